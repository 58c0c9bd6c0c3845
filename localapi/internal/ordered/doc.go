// Package ordered is a map sorted by string key, with snapshots in constant time.
//
// The map is a list of sorted chunks. A snapshot shares every chunk with the map it was taken from. Whichever of the
// two first writes to a shared chunk copies that chunk (and, once, the list of chunks). So a list request iterates over
// a consistent state without holding the writers' lock, and a write costs at most one small copy.
package ordered
