package lean

import (
	"bytes"
	"hash/maphash"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"
)

// Tree decodes an object into maps, like kjson.UnmarshalCaseSensitivePreserveInts. If share is true, the object may
// share parts with other objects.
//
// Concurrency: safe.
//
// Errors: the text is invalid, or not written the way Kubernetes writes it. The standard decoder finds out which.
func (d *Decoder) Tree(v Value, share bool) (map[string]any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.share = share
	r := reader{Decoder: d, text: v.text[:v.end], spans: v.spans, at: v.at, span: v.span}
	if r.peek() != '{' {
		return nil, errUnusual
	}
	if !r.indexed() {
		return nil, errUnusual
	}
	object, err := r.object(level{})
	if err == nil && r.at != v.end {
		err = errUnusual
	}
	return object, err
}

// reader decodes one text.
type reader struct {
	*Decoder
	text  []byte
	spans []span
	// at is the position in text; span is the index of the next span.
	at, span int
}

// level is the place of a value in the object.
type level struct {
	depth int
	// key is the last key on the path to the value.
	key string
	// number is the hash by which the site of the key is found.
	number int
}

// managedFieldsKey is the key of the managed fields in an object's metadata.
const (
	managedFieldsKey = "managedFields"
	metadataKey      = "metadata"
)

// indexed reports whether the next span begins at the position, as it does in valid JSON.
func (r *reader) indexed() bool {
	return r.span < len(r.spans) && int(r.spans[r.span].start) == r.at
}

// leap moves past the span that begins at the position.
func (r *reader) leap() {
	r.at, r.span = int(r.spans[r.span].end), int(r.spans[r.span].next)
}

func (r *reader) space() {
	for r.at < len(r.text) &&
		(r.text[r.at] == ' ' || r.text[r.at] == '\n' || r.text[r.at] == '\t' || r.text[r.at] == '\r') {
		r.at++
	}
}

// peek returns the next character that is not white space; 0 at the end.
func (r *reader) peek() byte {
	if r.at < len(r.text) && r.text[r.at] > ' ' {
		return r.text[r.at]
	}
	r.space()
	if r.at == len(r.text) {
		return 0
	}
	return r.text[r.at]
}

func (r *reader) value(at level) (any, error) {
	switch c := r.peek(); c {
	case '{', '[':
		return r.shared(at)
	case '"':
		b, simple, err := r.quoted()
		if err != nil {
			return nil, err
		}
		if !simple {
			return r.standard(b)
		}
		return r.boxes.box(b[1:len(b)-1], r.texts.of(at.number)), nil
	default:
		return r.scalar()
	}
}

// deepestShared is the depth below which parts of an object are not shared. The text of a part is hashed on each level
// above it, too, so a bound on the levels bounds what an object that is nested very deep costs.
const deepestShared = 64

// shared returns the object or array at the position, from the table if the same text was decoded before.
func (r *reader) shared(at level) (any, error) {
	if !r.indexed() {
		return nil, errUnusual
	}
	text := r.text[r.at:r.spans[r.span].end]
	// An object's own metadata is not shared, because its managed fields are left out. The same text elsewhere keeps
	// them.
	if !r.share || at.depth > deepestShared || (at.depth == 1 && at.key == metadataKey) {
		return r.fresh(at)
	}
	site := r.subtrees.of(at.number)
	if !site.worth() {
		return r.fresh(at)
	}
	hash := maphash.Bytes(r.words.seed, text)
	p := r.trees.find(hash)
	if p == nil {
		r.trees.put(hash, nil) // The table keeps a value only when it comes a second time.
		return r.fresh(at)
	}
	p.hash |= met
	site.found++
	if known := p.value; known != nil {
		if !bytes.Equal(known.text, text) {
			return r.fresh(at)
		}
		r.leap()
		return known.value, nil
	}
	value, err := r.fresh(at)
	if err == nil {
		r.trees.keep(hash, &tree{text: bytes.Clone(text), value: value})
	}
	return value, err
}

func (r *reader) fresh(at level) (any, error) {
	if r.text[r.at] == '[' {
		return r.array(at)
	}
	return r.object(at)
}

func (r *reader) object(at level) (map[string]any, error) {
	size := int(r.spans[r.span].commas) + 1
	r.at++
	r.span++
	if r.peek() == '}' {
		r.at++
		return map[string]any{}, nil
	}
	m := make(map[string]any, size)
	for n := 1; ; n++ {
		key, err := r.key()
		if err != nil {
			return nil, err
		}
		if r.peek() != ':' {
			return nil, errUnusual
		}
		r.at++
		if at.depth == 1 && key == managedFieldsKey && at.key == metadataKey && r.peek() == '[' {
			if !r.indexed() {
				return nil, errUnusual
			}
			r.leap()
			n--
		} else {
			v, err := r.value(level{depth: at.depth + 1, key: key, number: numberOfKey(key)})
			if err != nil {
				return nil, err
			}
			if m[key] = v; len(m) != n {
				return nil, errUnusual // A duplicate key.
			}
		}
		switch r.peek() {
		case ',':
			r.at++
		case '}':
			r.at++
			return m, nil
		default:
			return nil, errUnusual
		}
	}
}

// numberOfKey distributes keys over the sites.
func numberOfKey(key string) int {
	n := uint8(len(key))
	if len(key) > 0 {
		n = n*31 ^ key[0]*7 ^ key[len(key)-1]*13 ^ key[len(key)/2]*29
	}
	return int(n)
}

func (r *reader) array(at level) ([]any, error) {
	size := int(r.spans[r.span].commas) + 1
	r.at++
	r.span++
	if r.peek() == ']' {
		r.at++
		return []any{}, nil
	}
	at.depth++
	all := make([]any, 0, size)
	for {
		v, err := r.value(at)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
		switch r.peek() {
		case ',':
			r.at++
		case ']':
			r.at++
			return all, nil
		default:
			return nil, errUnusual
		}
	}
}

func (r *reader) key() (string, error) {
	if r.peek() != '"' {
		return "", errUnusual
	}
	b, simple, err := r.quoted()
	if err != nil {
		return "", err
	}
	if simple {
		return r.words.intern(b[1:len(b)-1], &r.keys), nil
	}
	v, err := r.standard(b)
	key, _ := v.(string)
	return key, err
}

// quoted returns the string at the position, with its quotes. simple is true if it has no escapes.
func (r *reader) quoted() (b []byte, simple bool, err error) {
	simple = true
	for i := r.at + 1; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == '"':
			b = r.text[r.at : i+1]
			r.at = i + 1
			return b, simple && (ascii(b) || utf8.Valid(b)), nil
		case c == '\\':
			simple = false
			i++
		case c < ' ':
			return nil, false, errUnusual
		}
	}
	return nil, false, errUnusual
}

func ascii(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// scalar reads a number, true, false or null.
func (r *reader) scalar() (any, error) {
	text := r.literal()
	switch string(text) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null":
		return nil, nil
	}
	if n, ok := integer(text); ok {
		return n, nil
	}
	return r.standard(text)
}

// literal returns the text from the position to the first character that cannot be part of a number or a word.
func (r *reader) literal() []byte {
	start := r.at
	for r.at < len(r.text) && r.text[r.at] != ',' && r.text[r.at] != '}' && r.text[r.at] != ']' && r.text[r.at] > ' ' {
		r.at++
	}
	return r.text[start:r.at]
}

// integer parses an integer of at most 18 digits without leading zeros. ok is false for any other text.
func integer(text []byte) (n int64, ok bool) {
	digits := text
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 18 || (digits[0] == '0' && len(text) > 1) {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if len(digits) < len(text) {
		n = -n
	}
	return n, true
}

// standard decodes a string or a number with the standard decoder.
func (r *reader) standard(text []byte) (v any, err error) {
	if len(text) == 0 {
		return nil, errUnusual
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(text, &v) != nil {
		return nil, errUnusual
	}
	return v, nil
}
