package differential

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

func join(all []string) string { return strings.Join(all, ",") }

// TestScenarios plays the scenarios on kube-controller-manager and on flyball manager.
func TestScenarios(t *testing.T) {
	compare(t, startReal(t, "kube-controller-manager"), startOurs(t, "flyball manager"), named(os.Getenv("FLYBALL_SCENARIOS")))
}

// TestNoiseFloor plays them on two kube-controller-managers: what differs between those two says nothing about ours.
func TestNoiseFloor(t *testing.T) {
	if os.Getenv("PEERS") != "all" {
		t.Skip("only with PEERS=all")
	}
	compare(t, startReal(t, "kube-controller-manager"), startReal(t, "another kube-controller-manager"), named(os.Getenv("FLYBALL_SCENARIOS")))
}

// named are the scenarios whose name the regular expression finds.
func named(expression string) []scenario {
	pattern := regexp.MustCompile(expression)
	return slices.DeleteFunc(slices.Concat(
		rolloutScenarios(), revisionScenarios(), scaleScenarios(), ownershipScenarios(), podScenarios(),
	), func(sc scenario) bool { return !pattern.MatchString(sc.name) })
}

// compare plays scenarios on both sides at once and fails for each whose transcripts differ.
func compare(t *testing.T, left, right *side, scenarios []scenario) {
	t.Helper()
	var wg sync.WaitGroup
	var transcripts [2]map[string]string
	var errs [2]error
	for i, s := range []*side{left, right} {
		wg.Go(func() { transcripts[i], errs[i] = s.play(context.WithoutCancel(t.Context()), scenarios) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(transcripts[0])) {
		keep(t, name, transcripts[0][name], transcripts[1][name])
		t.Run(name, func(t *testing.T) {
			if diff := sideBySide(transcripts[0][name], transcripts[1][name], left.name, right.name); diff != "" {
				t.Errorf("scenario %s differs\n%s", name, diff)
			}
			if strings.Contains(transcripts[0][name], "FAILED") {
				t.Errorf("scenario %s could not be played:\n%s", name, transcripts[0][name])
			}
		})
	}
}

// keep writes the transcripts of a scenario into the folder that FLYBALL_TRANSCRIPTS names, if it is set.
func keep(t *testing.T, name string, transcripts ...string) {
	dir := os.Getenv("FLYBALL_TRANSCRIPTS")
	if dir == "" {
		return
	}
	for i, text := range transcripts {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s.%d.txt", name, i)), []byte(text), 0o644); err != nil {
			t.Error(err)
		}
	}
}
