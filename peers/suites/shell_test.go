package suites

import (
	_ "embed"
	"regexp"
	"strings"
)

// shell is added to controller-runtime's package manager.
//
//go:embed testdata/shell.go.txt
var shell string

// shellEdits are the edits that the shell needs: its manager's methods are those of the one inside, and functions
// that the tests pass in options are called for what the one inside makes.
var shellEdits = []edit{
	{"manager/internal.go", `type controllerManager struct \{\n`, "type controllerManager struct {\n\tours Manager\n"},
	{
		"manager/manager.go", `func defaultHealthProbeListener\(.*\{\n`,
		"${0}\tif flyballListener != nil {\n\t\treturn flyballListener, nil\n\t}\n",
	},
	{
		"manager/manager.go", `func defaultPprofListener\(.*\{\n`,
		"${0}\tif flyballListener != nil {\n\t\treturn flyballListener, nil\n\t}\n",
	},
	{"leaderelection/leader_election.go", `func NewResourceLock\(`, `// What the shell asks for, and is given.
var (
	FlyballNewLock func(*rest.Config, recorder.Provider, Options) (resourcelock.Interface, error)
	FlyballLock    resourcelock.Interface
)

func NewResourceLock(config *rest.Config, recorderProvider recorder.Provider, options Options) (resourcelock.Interface, error) {
	f := newResourceLock
	if FlyballNewLock != nil {
		f, FlyballNewLock = FlyballNewLock, nil
	}
	var err error
	FlyballLock, err = f(config, recorderProvider, options)
	return FlyballLock, err
}

func newResourceLock(`},
	{"metrics/server/server.go", `func NewServer\(`, `// FlyballNewServer is what the shell asks for.
var FlyballNewServer func(Options, *rest.Config, *http.Client) (Server, error)

func NewServer(o Options, config *rest.Config, httpClient *http.Client) (Server, error) {
	if f := FlyballNewServer; f != nil {
		FlyballNewServer = nil
		return f(o, config, httpClient)
	}
	return newServer(o, config, httpClient)
}

func newServer(`},
}

var method = regexp.MustCompile(`(?m)^func \(cm \*controllerManager\) ([A-Z]\w*)\(([^)]*)\) ?([^\n]*)\{$`)

// delegate has the exported methods in controller-runtime's internal.go call those of the manager in the shell, if
// there is one.
func delegate(text string) string {
	return method.ReplaceAllStringFunc(text, func(head string) string {
		parts := method.FindStringSubmatch(head)
		var args []string
		for _, p := range strings.Split(parts[2], ",") {
			if name, _, ok := strings.Cut(strings.TrimSpace(p), " "); ok {
				args = append(args, name)
			}
		}
		call := "cm.ours." + parts[1]
		if parts[1] == "Start" {
			call = "cm.flyballStart"
		}
		call += "(" + strings.Join(args, ", ") + ")"
		if parts[3] = strings.TrimSpace(parts[3]); parts[3] != "" {
			call = "return " + call
		} else {
			call += "\n\t\treturn"
		}
		return head + "\n\tif cm.ours != nil {\n\t\t" + call + "\n\t}"
	})
}
