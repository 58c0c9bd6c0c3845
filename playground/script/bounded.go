package script

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/flyball-dev/flyball/reconcile"
)

// MostSteps bounds the steps of Starlark's interpreter in one reconcile, and in a script itself.
const MostSteps = 1_000_000

// MostMemory bounds the bytes by which the heap may grow in one reconcile, and in a script itself. Nothing that a
// reconcile makes stays: Starlark freezes the globals of a script.
const MostMemory = 128 << 20

// stepsPerLook is how many steps there are between two looks at the heap. So few can use no more than 1 GB: a sum is at
// most twice as large as what is there, and times bounds a product.
const stepsPerLook = 4

// bounded runs a part of a script, within MostSteps and MostMemory.
//
// Errors: they begin with the line of the script. That of a script that was stopped is terminal.
func bounded(run func(*starlark.Thread) error) error {
	thread := &starlark.Thread{Name: file, Print: func(*starlark.Thread, string) {}}
	most := heap() + MostMemory
	collectAt := most
	thread.OnMaxSteps = func(*starlark.Thread) {
		thread.SetMaxExecutionSteps(thread.Steps + stepsPerLook)
		if thread.Steps >= MostSteps {
			thread.Cancel(fmt.Sprintf("stopped after %d steps: it must come to an end", MostSteps))
		}
		if heap() < collectAt {
			return
		}
		runtime.GC() // Most of it may be garbage.
		used := heap()
		if used > most {
			thread.Cancel(fmt.Sprintf("stopped because it uses more than %d MB of memory", MostMemory>>20))
		}
		collectAt = used + MostMemory
	}
	thread.SetMaxExecutionSteps(stepsPerLook)
	err := explain(run(thread))
	if heap() > most {
		runtime.GC() // Otherwise its garbage would raise the bound of the next one.
	}
	return err
}

// heap returns the size of all objects, with those that are garbage.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// parse reads a script. It makes each product a call of times, because the interpreter would make a list of 16 GB in
// one step. The index in "a[index] *= b" is evaluated twice.
func parse(source string) (*syntax.File, error) {
	tree, err := (&syntax.FileOptions{}).Parse(file, source, 0)
	if err != nil {
		return nil, err
	}
	product := func(at syntax.Position, x, y syntax.Expr) syntax.Expr {
		return &syntax.CallExpr{
			Fn: &syntax.Ident{NamePos: at, Name: productName}, Lparen: at, Rparen: at, Args: []syntax.Expr{x, y},
		}
	}
	syntax.Walk(tree, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.BinaryExpr:
			if n.Op == syntax.STAR { // It becomes "0 or" the call, because a call cannot take the place of this node.
				n.Y = product(n.OpPos, n.X, n.Y)
				n.X = &syntax.Literal{Token: syntax.INT, TokenPos: n.OpPos, Value: int64(0)}
				n.Op = syntax.OR
			}
		case *syntax.AssignStmt:
			if n.Op == syntax.STAR_EQ {
				n.Op, n.RHS = syntax.EQ, product(n.OpPos, n.LHS, n.RHS)
			}
		}
		return true
	})
	return tree, nil
}

// productName is the name of times. No script can use it for something else.
const productName = "*"

// times is the operator "*". It makes nothing of more elements than MostMemory has values.
func times(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	x, y := args[0], args[1]
	for _, pair := range [][2]starlark.Value{{x, y}, {y, x}} {
		count, err := starlark.AsInt32(pair[1])
		if most := MostMemory / 16; err == nil && starlark.Len(pair[0])*count > most {
			return nil, fmt.Errorf("the product has more than %d elements", most)
		}
	}
	return starlark.Binary(syntax.STAR, x, y)
}

// ranged is the function range. It makes no more numbers than can be read in MostSteps. Otherwise list(range(N)) would
// use any memory in one step.
func ranged(thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, more []starlark.Tuple) (
	starlark.Value, error,
) {
	value, err := starlark.Call(thread, starlark.Universe["range"], args, more)
	if err == nil && starlark.Len(value) > MostSteps {
		err = fmt.Errorf("range has more than %d numbers", MostSteps)
	}
	return value, err
}

// explain puts the line of the script before an error.
func explain(err error) error {
	var evaluated *starlark.EvalError
	var unread syntax.Error
	var unresolved resolve.ErrorList
	switch {
	case errors.As(err, &unread):
		return fmt.Errorf("line %d: %s", unread.Pos.Line, unread.Msg)
	case errors.As(err, &unresolved):
		return fmt.Errorf("line %d: %s", unresolved[0].Pos.Line, unresolved[0].Msg)
	case !errors.As(err, &evaluated):
		return err
	}
	line := int32(0)
	for _, frame := range evaluated.CallStack { // the innermost last
		if frame.Pos.Filename() == file {
			line = frame.Pos.Line
		}
	}
	if reason, stopped := strings.CutPrefix(evaluated.Msg, "Starlark computation cancelled: "); stopped {
		return reconcile.Terminal(fmt.Errorf("line %d: %s", line, reason))
	}
	return fmt.Errorf("line %d: %w", line, evaluated.Unwrap())
}
