// Package informer runs the same assertions on client-go's informers, indexers and stores and on Flyball's, which
// have the same names in github.com/flyball-dev/flyball/informer/clientgo. client-go is the oracle: what it does not
// pass is no assertion. Where the two are meant to differ, TestDivergence… pins down both answers.
//
// program/ holds one program twice, with nothing but import lines changed.
package informer
