package differential

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func join(all []string) string { return strings.Join(all, ",") }

// TestScenarios plays the scenarios and those of some seeds on kube-controller-manager and on flyball manager.
//
// PEERS=all: those that are slow too, and ten times the seeds. FLYBALL_SEED: the first seed, instead of 1.
// FLYBALL_SCENARIOS: only those whose name this regular expression finds.
func TestScenarios(t *testing.T) {
	seeds := fewSeeds
	if everything() {
		seeds = manySeeds
	}
	left, right := startReal(t, "kube-controller-manager"), startOurs(t, "flyball manager")
	for batch := range slices.Chunk(chosen(t, seeds), atOnce) {
		compare(t, left, right, batch)
	}
}

// TestNoiseFloor plays them on two kube-controller-managers. A difference between those two is none of ours.
func TestNoiseFloor(t *testing.T) {
	if !everything() {
		t.Skip("only with PEERS=all")
	}
	left, right := startReal(t, "kube-controller-manager"), startReal(t, "another kube-controller-manager")
	for batch := range slices.Chunk(chosen(t, fewSeeds), atOnce) {
		compare(t, left, right, batch)
	}
}

// atOnce is how many scenarios are played side by side. More make a round longer, which costs less than more rounds.
const atOnce = 140

func everything() bool { return os.Getenv("PEERS") == "all" }

const fewSeeds, manySeeds = 20, 200

// chosen are the scenarios to play, so many that chance wrote among them.
func chosen(t *testing.T, seeds int) []scenario {
	t.Helper()
	first := 1
	if text := os.Getenv("FLYBALL_SEED"); text != "" {
		var err error
		if first, err = strconv.Atoi(text); err != nil {
			t.Fatalf("FLYBALL_SEED: %v", err)
		}
	}
	scenarios := slices.Concat(
		rolloutScenarios(), revisionScenarios(), scaleScenarios(), ownershipScenarios(), podScenarios(),
		endpointsScenarios(), garbageScenarios(),
	)
	if everything() {
		scenarios = append(scenarios, truncatedScenario())
	}
	for i := range seeds {
		scenarios = append(scenarios, seeded(first+i))
	}
	pattern := regexp.MustCompile(os.Getenv("FLYBALL_SCENARIOS"))
	return slices.DeleteFunc(scenarios, func(sc scenario) bool { return !pattern.MatchString(sc.name) })
}

// fewDiffer is how many scenarios of a batch may be played once more. Two real ones differed by chance, too, in one
// scenario of one run.
const fewDiffer = 2

// compare plays scenarios on both sides at once and fails for each whose transcripts differ, twice: a difference that
// does not come again was chance, and is told.
func compare(t *testing.T, left, right *side, scenarios []scenario) {
	t.Helper()
	transcripts := playBoth(t, left, right, scenarios)
	differs := func(name string) string {
		return sideBySide(transcripts[0][name], transcripts[1][name], left.name, right.name)
	}
	var again []scenario
	for _, sc := range scenarios {
		if diff := differs(sc.name); diff != "" {
			t.Logf("scenario %s differs, and is played again:\n%s", sc.name, diff)
			sc.suffix = "-again"
			again = append(again, sc)
		}
	}
	if len(again) > 0 && len(again) <= fewDiffer {
		for i, played := range playBoth(t, left, right, again) {
			maps.Copy(transcripts[i], played)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(transcripts[0])) {
		keep(t, name, transcripts[0][name], transcripts[1][name])
		t.Run(name, func(t *testing.T) {
			if diff := differs(name); diff != "" {
				t.Errorf("scenario %s differs; play it again by %s\n%s", name, replay(name), diff)
			}
			if strings.Contains(transcripts[0][name], "FAILED") {
				t.Errorf("scenario %s could not be played:\n%s", name, transcripts[0][name])
			}
		})
	}
}

// playBoth returns the transcripts of the left and of the right side, by scenario.
func playBoth(t *testing.T, left, right *side, scenarios []scenario) (transcripts [2]map[string]string) {
	t.Helper()
	var wg sync.WaitGroup
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
	return transcripts
}

// replay is what to set to play one scenario only.
func replay(name string) string {
	set := fmt.Sprintf("PEERS=all FLYBALL_SCENARIOS='^%s$'", name)
	if seed, ok := strings.CutPrefix(name, "seed-"); ok {
		set = fmt.Sprintf("FLYBALL_SEED=%s FLYBALL_SCENARIOS='^%s$'", seed, name)
	}
	return set
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
