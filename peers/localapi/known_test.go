package localapi

// known are all differences that are meant. Each has its line in docs/divergence.md.
var known = []knownDifference{}
