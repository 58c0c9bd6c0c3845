package localapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/flyball-dev/flyball/internal/connections"
	"github.com/flyball-dev/flyball/internal/loopback"
	"github.com/flyball-dev/flyball/localapi/auth"
)

// Listen opens a port for [Server.Serve]. The host of addr must be a loopback address ("" is 127.0.0.1), because by
// default the server knows no users, and everyone on this machine may do everything.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	host, port, err := split(addr)
	if err != nil {
		return nil, fmt.Errorf("listen at %w", err)
	}
	var c net.ListenConfig
	return c.Listen(ctx, "tcp", net.JoinHostPort(host, port))
}

// CheckAddr returns the error that [Listen] would return for an address, as far as that can be known without opening a
// port.
func CheckAddr(addr string) error {
	_, port, err := split(addr)
	if err != nil {
		return err
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("%q: the port must be between 0 and 65535", addr)
	}
	return nil
}

// split returns the loopback host and the port of an address. Its errors name the address.
func split(addr string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(addr)
	if err != nil {
		return "", "", err
	}
	if host == "" || host == "localhost" {
		host = "127.0.0.1"
	}
	if !loopback.Host(host) {
		return "", "", fmt.Errorf("%q: not a loopback address", addr)
	}
	return host, port, nil
}

// shutdownGrace is how long Serve waits for requests in flight after its context has ended. Watches end at once.
const shutdownGrace = 5 * time.Second

// Serve answers requests on l until ctx ends or the server is closed. It then gives requests in flight a few seconds to
// finish, closes l, and returns nil.
//
// It answers requests for the address that l listens on, for localhost, and for [Options.AllowedHosts]. It refuses
// requests that a web page from another site may have made a browser send. A header may take 10 seconds, a body 30, and
// an answer (except a watch) a minute. A connection that is idle for a minute is closed. There are at most 4,096
// connections, and at most half as many as the process may open files; then a new one takes the place of the one that
// has been idle for longest.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return s.serve(ctx, l, nil, nil)
}

// ServeTLS is [Server.Serve] over TLS, in HTTP/2 with clients that speak it. If the configuration has ClientCAs, the
// client certificates that these signed identify users: the common name is the user, and organizations are groups. A
// client without a certificate is system:anonymous, unless it sends a token.
func (s *Server) ServeTLS(ctx context.Context, l net.Listener, c *tls.Config) error {
	c = c.Clone()
	var nobody *auth.User
	if c.ClientCAs != nil {
		if c.ClientAuth == tls.NoClientCert {
			c.ClientAuth = tls.VerifyClientCertIfGiven
		}
		u := auth.Nobody()
		nobody = &u
	}
	return s.serve(ctx, l, c, nobody)
}

// serve answers requests, over TLS if c is not nil. If user is not nil, it is the user of requests that bring no
// credentials.
func (s *Server) serve(ctx context.Context, l net.Listener, c *tls.Config, user *auth.User) error {
	streams, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()
	if user != nil {
		streams = auth.WithUser(streams, user)
	}
	server := &http.Server{
		Handler:           &guard{api: s.handler, codec: s.env.Codec, allowed: s.allowedHosts},
		ReadHeaderTimeout: readHeaderTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       idleTimeout,
		TLSConfig:         c,
		BaseContext:       func(net.Listener) context.Context { return streams },
		ErrorLog:          log.New(io.Discard, "", 0), // drops errors of handshakes, which the clients see themselves
	}
	bound := connections.New(connections.Share(2)) // the other half of the descriptors is for the store and webhooks
	server.ConnState = bound.Note
	served := make(chan error, 1) // one send, by the goroutine below
	go func() {
		if c != nil {
			served <- server.ServeTLS(l, "", "") // the certificates are in c
		} else {
			served <- server.Serve(l)
		}
	}()
	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	case <-s.stopping:
	}
	// Ending the contexts ends the watches; a shutdown that waited for them would never return. Slow requests lose
	// their context too.
	endStreams()
	now, cancelNow := context.WithCancel(context.WithoutCancel(ctx))
	cancelNow()
	_ = server.Shutdown(now) // closes the listener without waiting
	<-served
	bound.CloseWaiting()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	if err != nil {
		return fmt.Errorf("shut down: %w", err)
	}
	return nil
}
