// Package crd is the type CustomResourceDefinition: its rules ([Definition]) and what becomes of a definition once it is
// stored ([Accept], [Establish]). What it defines is package customresource's.
package crd
