package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ChangesSince says in one line, for people, what was written after a revision under a prefix, such as that of a
// tenant: "created 2 pods; updated 1 deployments, 4 pods", or "nothing changed". It leaves out Kubernetes' events,
// which only report other changes.
//
// Errors: those of Watch, except [ErrCompacted]: then the line says that there are more changes than the store knows.
func ChangesSince(ctx context.Context, s Storage, prefix string, revision int64) (string, error) {
	var events []Event
	w, err := s.Watch(ctx, prefix, revision)
	if err == nil {
		defer w.Close()
		events, _, err = w.Poll()
	}
	switch {
	case errors.Is(err, ErrCompacted):
		return "more changes than the store remembers", nil
	case err != nil:
		return "", err
	}
	verbs := []string{"created", "updated", "deleted"}
	counts := map[string]map[string]int{} // verb → resource → how many
	for _, verb := range verbs {
		counts[verb] = map[string]int{}
	}
	for _, e := range events {
		key, err := ParseKey(e.Key)
		switch {
		case err != nil:
			return "", err
		case key.Resource == "events":
		case e.Deleted:
			counts["deleted"][key.Resource]++
		case e.Previous.Revision == NoRevision:
			counts["created"][key.Resource]++
		default:
			counts["updated"][key.Resource]++
		}
	}
	var parts []string
	for _, verb := range verbs {
		var of []string
		for _, resource := range slices.Sorted(maps.Keys(counts[verb])) {
			of = append(of, fmt.Sprintf("%d %s", counts[verb][resource], resource))
		}
		if len(of) > 0 {
			parts = append(parts, verb+" "+strings.Join(of, ", "))
		}
	}
	if len(parts) == 0 {
		return "nothing changed", nil
	}
	return strings.Join(parts, "; "), nil
}
