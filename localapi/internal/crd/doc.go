// Package crd is the type CustomResourceDefinition: its rules ([Definition]) and the life of a definition once it is
// stored ([Accept], [Establish]). Package customresource implements the types that it defines.
package crd
