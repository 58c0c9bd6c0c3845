package lean

import (
	"bytes"
	"errors"
)

// errSyntax reports that brackets do not match, that text ends too early, or that values are nested too deep.
var errSyntax = errors.New("not JSON")

// deepest is how deep objects and arrays may be nested. Scan rejects a value that is nested deeper. An API server
// stores objects that are nested as deep as encoding/json allows, which is 10,000 levels. The event of a watch is one
// more.
const deepest = 10_001

// span is an object or an array in the text of a value.
type span struct {
	// start is the position of the opening bracket. end is the position after the closing one.
	start, end int32
	// next is the index of the first span that begins after this one ends.
	next int32
	// commas counts the commas between its own members.
	commas int32
}

// Index finds where the objects and arrays of a JSON value begin and end, so that each can be looked up as a whole
// before it is decoded. The value may arrive in pieces.
//
// It checks only that brackets and quotes match, and that the value is not nested too deep.
type Index struct {
	spans []span
	// open has the index and the closing bracket of each span that has not ended.
	open []opened
	// at is how far the text was scanned. quoted is true if that position is inside a string.
	at     int
	quoted bool
	// scalar is true if the value is a number, true, false or null. Such a value ends before the first character that
	// cannot be part of it.
	scalar bool
}

type opened struct {
	span int32
	end  byte
}

// Reset begins another value.
func (x *Index) Reset() {
	x.spans, x.open, x.at, x.quoted, x.scalar = x.spans[:0], x.open[:0], 0, false, false
}

// Scan looks for the end of the value at the beginning of text, which must not be white space. If done is true, the
// value is text[:x.Len()]. Otherwise call Scan again with the same text and what has arrived after it; Scan continues
// where it stopped.
//
// Errors: the text is not JSON.
func (x *Index) Scan(text []byte) (done bool, err error) {
	for x.at < len(text) {
		if x.quoted {
			if !x.unquote(text) {
				return false, nil
			}
			if len(x.open) == 0 {
				return true, nil
			}
			continue
		}
		c := text[x.at]
		if x.scalar {
			if c == ',' || c == '}' || c == ']' || c <= ' ' {
				return true, nil
			}
			x.at++
			continue
		}
		x.at++
		switch c {
		case '"':
			x.quoted = true
		case '{', '[':
			if len(x.open) == deepest {
				return false, errSyntax
			}
			// In ASCII, ] and } come two after [ and {.
			x.open = append(x.open, opened{int32(len(x.spans)), c + 2})
			x.spans = append(x.spans, span{start: int32(x.at - 1)})
		case '}', ']':
			last := len(x.open) - 1
			if last < 0 || x.open[last].end != c {
				return false, errSyntax
			}
			s := &x.spans[x.open[last].span]
			s.end, s.next = int32(x.at), int32(len(x.spans))
			if x.open = x.open[:last]; last == 0 {
				return true, nil
			}
		case ',':
			if len(x.open) == 0 {
				return false, errSyntax
			}
			x.spans[x.open[len(x.open)-1].span].commas++
		default:
			x.scalar = len(x.open) == 0
		}
	}
	return false, nil
}

// unquote moves to the end of a string. It returns false if the end has not arrived yet.
func (x *Index) unquote(text []byte) bool {
	for i := x.at; i < len(text); i++ {
		switch text[i] {
		case '"':
			x.at, x.quoted = i+1, false
			return true
		case '\\':
			if i+1 == len(text) {
				x.at = i // The next character has not arrived yet.
				return false
			}
			i++
		}
	}
	x.at = len(text)
	return false
}

// Len returns how many bytes of the text were scanned. Once Scan has returned true, it is the length of the value.
func (x *Index) Len() int { return x.at }

// Value is a JSON value with its index. It is valid until its text or its index changes.
type Value struct {
	text []byte
	// spans has the spans of the whole text. span is the index of the value's own span if the value is an object or an
	// array; otherwise it is the index of the next span in the text.
	spans []span
	at    int
	span  int
	end   int
}

// Value returns the value that Scan found at the beginning of text.
func (x *Index) Value(text []byte) Value {
	return Value{text: text[:x.at], spans: x.spans, end: x.at}
}

// ValueOf returns text as a value.
//
// Errors: the text is not JSON.
func ValueOf(text []byte) (Value, error) {
	text = bytes.TrimSpace(text)
	var x Index
	if done, err := x.Scan(text); err != nil || (!done && !x.scalar) {
		return Value{}, errSyntax
	}
	return x.Value(text), nil
}

// Bytes returns the text of the value.
func (v Value) Bytes() []byte { return v.text[v.at:v.end] }

// Text returns the content of the value if it is a string that has no escapes. It returns nil for all other values.
func (v Value) Text() []byte {
	r := reader{text: v.text, at: v.at}
	if r.peek() != '"' {
		return nil
	}
	b, simple, err := r.quoted()
	if err != nil || !simple {
		return nil
	}
	return b[1 : len(b)-1]
}

// Members calls each for every member of an object, until each returns false. Other values have no members. If the
// object is not valid JSON, Members may miss some.
func (v Value) Members(each func(key []byte, member Value) bool) {
	r := reader{text: v.text[:v.end], spans: v.spans, at: v.at, span: v.span}
	if r.peek() != '{' {
		return
	}
	r.at++
	r.span++
	for r.peek() == '"' {
		key, _, err := r.quoted()
		if err != nil || r.peek() != ':' {
			return
		}
		r.at++
		member, ok := r.skip()
		if !ok || !each(key[1:len(key)-1], member) || r.peek() != ',' {
			return
		}
		r.at++
	}
}

// skip moves past the next value and returns it.
func (r *reader) skip() (v Value, ok bool) {
	c := r.peek()
	v = Value{text: r.text, spans: r.spans, at: r.at, span: r.span}
	switch c {
	case 0:
		return v, false
	case '{', '[':
		if !r.indexed() {
			return v, false
		}
		r.leap()
	case '"':
		if _, _, err := r.quoted(); err != nil {
			return v, false
		}
	default:
		r.literal()
	}
	v.end = r.at
	return v, r.at <= len(r.text)
}

// DropManagedFields removes the managed fields from an object's text, so that no decoder has to read them. It
// overwrites them with null and spaces.
func (v Value) DropManagedFields() {
	v.Members(func(key []byte, metadata Value) bool {
		if string(key) != metadataKey {
			return true
		}
		metadata.Members(func(key []byte, fields Value) bool {
			if string(key) != managedFieldsKey {
				return true
			}
			if text := fields.Bytes(); len(text) > len("null") && text[0] == '[' {
				for i := range text[copy(text, "null"):] {
					text[len("null")+i] = ' '
				}
			}
			return true
		})
		return true
	})
}
