package lean

import "hash/maphash"

// longest is how long a string may be to be kept once for all: longer ones are rarely the same, and cost to compare.
const longest = 256

// words gives equal strings one memory.
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

// boxes is words for strings that stand in a variable of any type: those take memory of their own to hold the string.
type boxes struct {
	seed  maphash.Seed
	table table[any]
}

// box returns the bytes as a string.
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
