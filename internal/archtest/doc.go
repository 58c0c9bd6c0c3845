// Package archtest tests the tree itself: which package may import which, that exported names are
// documented, that constructors have examples, that what the docs name exists. It holds only tests.
package archtest
