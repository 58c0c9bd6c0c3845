// Package controller has the reconcilers of this operator, one file for each kind.
package controller
