// Package ordered is a map sorted by string key, with snapshots in constant time.
//
// The map is a B-tree. A snapshot shares every node with the map it was taken from. Whichever of the two first writes
// to a shared node copies that node and those above it. So a list request iterates over a consistent state without
// holding the writers' lock, and a write costs at most a few small copies.
package ordered
