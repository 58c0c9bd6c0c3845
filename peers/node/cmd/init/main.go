//go:build linux

// Command init is process 1 of the node's container. It starts and stops programs as it is told by HTTP, starts them
// again when they end by themselves, and reaps every process that has no other parent.
//
//	PUT /NAME     the body is a command line, a JSON list; the program NAME is stopped if it runs, and started
//	DELETE /NAME  the program is stopped; the answer comes when it has ended
//
// The output of a program goes to NAME.log in the folder of the first argument. Init prints the container's address
// when it is ready, and ends when its standard input does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// port is where commands are taken. Package node knows it too.
const port = "10000"

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "init:", err)
		os.Exit(1)
	}
}

func run(logs string) error {
	if err := prepare(); err != nil {
		return err
	}
	s := newSupervisor(logs)
	go s.reap(context.Background())
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /{name}", func(w http.ResponseWriter, r *http.Request) {
		var command []string
		err := json.NewDecoder(r.Body).Decode(&command)
		if err == nil && len(command) == 0 {
			err = errors.New("the command line is empty")
		}
		if err == nil {
			s.stop(r.PathValue("name"))
			err = s.start(r.PathValue("name"), command)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	mux.HandleFunc("DELETE /{name}", func(_ http.ResponseWriter, r *http.Request) { s.stop(r.PathValue("name")) })
	listener, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 2) // one value from each of the goroutines below
	go func() { ended <- server.Serve(listener) }()
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		ended <- err
	}()
	ip, err := address()
	if err != nil {
		return err
	}
	fmt.Println(ip)
	return <-ended // the kernel ends all other processes of the container
}

// address returns the container's IPv4 address.
func address() (string, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
			return ip.IP.String(), nil
		}
	}
	return "", errors.New("the container has no IPv4 address")
}
