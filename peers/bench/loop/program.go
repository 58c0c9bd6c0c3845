package loop

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"

	"k8s.io/client-go/rest"
)

// Program is a system and the folder in cmd of the program that is that system. Each program links only what its system
// needs, as the program of a controller's author does: much of the memory of a small one is pages of its file.
type Program struct{ System, Folder string }

// Programs are compared; the first is what the others are compared with.
var Programs = []Program{
	{"controller-runtime", "theirs"},
	{"controller-runtime, our parts", "parts"},
	{"Flyball", "ours"},
}

// Main is the main function of the programs. It prints a [Result] as JSON.
func Main(s System) {
	work := flag.String("work", "", "a Work in JSON")
	server := flag.String("server", "", "the address of the API server")
	profile := flag.String("profile", "", "write CPU and memory profiles, with this prefix")
	token := flag.String("token", "", "be the operator of Widgets as the user of this token, instead of the work")
	authority := flag.String("ca", "", "the certificate of that operator's API server")
	flag.Parse()
	run := func() error { return main(s, *work, *server, *profile) }
	if *token != "" {
		config := &rest.Config{
			Host: *server, BearerToken: *token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAFile: *authority},
		}
		run = func() error { return s.Run(context.Background(), config, operator()) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "loop:", err)
		os.Exit(1)
	}
}

func main(s System, work, server, profile string) error {
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt)
	defer release()
	var w Work
	if err := json.Unmarshal([]byte(work), &w); err != nil {
		return fmt.Errorf("-work: %w", err)
	}
	if profile != "" {
		defer profiled(fmt.Sprintf("%s-%s-%d", profile, w.Kind, w.Workers))()
	}
	r, err := Measure(ctx, s, w, server, os.Stdout)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// profiled starts to profile, and returns what writes the profiles.
func profiled(prefix string) (write func()) {
	file, err := os.Create(prefix + ".cpu")
	if err == nil {
		err = pprof.StartCPUProfile(file)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "loop:", err)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close()
		if file, err := os.Create(prefix + ".mem"); err == nil {
			_ = pprof.Lookup("allocs").WriteTo(file, 0)
			_ = file.Close()
		}
	}
}
