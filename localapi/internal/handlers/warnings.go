package handlers

import (
	"net/http"
	"unicode/utf8"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// The bounds of the warnings in an answer. If all of them have more than mostRunes, each is cut after runesOfOne, and
// those that come after mostRunes are left out.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/filters/warning.go.
const (
	mostRunes  = 4 * 1024
	runesOfOne = 256
)

// warnings are those for the client of a request, in order and each once.
type warnings struct {
	texts []string
	seen  map[string]bool
	runes int // of what the header will have
	cut   bool
}

func (w *warnings) add(text string) {
	if text == "" || w.cut && w.runes >= mostRunes || w.seen[text] {
		return
	}
	if w.seen == nil {
		w.seen = map[string]bool{}
	}
	w.seen[text] = true
	if w.cut {
		text = firstRunes(text)
	}
	w.texts = append(w.texts, text)
	if w.runes += utf8.RuneCountInString(text); w.cut || w.runes <= mostRunes {
		return
	}
	w.cut, w.runes = true, 0
	for i, text := range w.texts {
		w.texts[i] = firstRunes(text)
		w.runes += utf8.RuneCountInString(w.texts[i])
	}
}

func firstRunes(text string) string {
	n := 0
	for i := range text {
		if n++; n > runesOfOne {
			return text[:i]
		}
	}
	return text
}

// header puts the warnings into the header of an answer.
func (w *warnings) header(h http.Header) {
	for _, text := range w.texts {
		if warning, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			h.Add("Warning", warning)
		}
	}
}
