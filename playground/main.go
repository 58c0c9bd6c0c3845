package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	scenario := ""
	if len(os.Args) > 1 {
		scenario = os.Args[1]
	}
	err := run(context.Background(), scenario, serve)
	fmt.Fprintln(os.Stderr, "playground:", err)
	fail(err)
}
