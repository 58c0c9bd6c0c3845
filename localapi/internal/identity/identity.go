package identity

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// suffixAlphabet has no vowels, so that names spell no words, and no characters that are mistaken for each other.
//
// Source: k8s.io/apimachinery pkg/util/rand.
const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"

const suffixLength = 5

// Source generates identities.
type Source struct {
	mu  sync.Mutex
	rnd *rand.Rand // nil: unpredictable
}

// New returns a source that draws from rnd, whose use it serializes. Nil means unpredictable identities.
func New(rnd rand.Source) *Source {
	if rnd == nil {
		return &Source{}
	}
	return &Source{rnd: rand.New(rnd)}
}

// UID returns a new random (version 4) UUID.
func (s *Source) UID() types.UID {
	if s.rnd == nil {
		return uuid.NewUUID()
	}
	s.mu.Lock()
	high, low := s.rnd.Uint64(), s.rnd.Uint64()
	s.mu.Unlock()
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], high)
	binary.BigEndian.PutUint64(b[8:], low)
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	const hex = "0123456789abcdef"
	out := make([]byte, 0, 36)
	for i, c := range b {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			out = append(out, '-')
		}
		out = append(out, hex[c>>4], hex[c&0xf])
	}
	return types.UID(out)
}

// Suffix returns the random suffix of a generated name.
func (s *Source) Suffix() string {
	if s.rnd == nil {
		return utilrand.String(suffixLength)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := make([]byte, suffixLength)
	for i := range b {
		b[i] = suffixAlphabet[s.rnd.IntN(len(suffixAlphabet))]
	}
	return string(b)
}
