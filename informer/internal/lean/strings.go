package lean

import "hash/maphash"

// longest is the length of the longest strings that are shared. Longer ones are rarely equal, and expensive to compare.
const longest = 256

// words shares the memory of equal strings.
type words struct {
	seed  maphash.Seed
	table table[string]
}

// intern returns the bytes as a string.
func (w *words) intern(b []byte, at *site) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > longest {
		return string(b)
	}
	if !at.worth() {
		return string(b)
	}
	hash := maphash.Bytes(w.seed, b)
	if p := w.table.find(hash); p != nil && p.value == string(b) { // Compares without a copy.
		p.hash |= met
		at.found++
		return p.value
	}
	text := string(b)
	w.table.put(hash, text)
	return text
}

// boxes does the same for strings in variables of type any, whose string header takes memory of its own.
type boxes struct {
	seed  maphash.Seed
	table table[any]
}

// box returns the bytes as a string in an interface.
func (w *boxes) box(b []byte, at *site) any {
	if len(b) == 0 {
		return ""
	}
	if len(b) > longest {
		return string(b)
	}
	if !at.worth() {
		return string(b)
	}
	hash := maphash.Bytes(w.seed, b)
	if p := w.table.find(hash); p != nil && p.value.(string) == string(b) {
		p.hash |= met
		at.found++
		return p.value
	}
	boxed := any(string(b))
	w.table.put(hash, boxed)
	return boxed
}
