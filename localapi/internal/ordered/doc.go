// Package ordered is a map sorted by string key whose snapshots cost nothing.
//
// The map is a list of sorted chunks. A snapshot shares every chunk with the map it was taken from; whichever of the
// two writes to a shared chunk first copies that chunk (and, once, the list of chunks). So a list request iterates over
// a consistent state without holding the lock under which writers go on, and a writer pays one small copy at most.
package ordered
