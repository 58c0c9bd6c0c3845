// Package archtest tests the source tree itself: that packages import only what they may, that exported names are
// documented, that constructors have examples, and that what docs, comments and texts of errors name exists. It
// contains only tests.
package archtest
