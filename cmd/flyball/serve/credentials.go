package serve

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/flyball-dev/flyball/cmd/flyball/store"
	"github.com/flyball-dev/flyball/internal/certs"
)

// Credentials are what clients of an API know it by. Beside a store they are kept, so that clients go on when the API
// has been started again: a kubeconfig has all that clients need, and a file next to it has the authority's key.
type Credentials struct {
	// Token is the token of the administrator.
	Token     string
	authority *certs.Authority
	port      string // the port of the last time; empty means none
}

// lifetime is how long an authority is valid. One that a store has kept is replaced when less than renewal is left.
const (
	lifetime = 365 // days
	renewal  = 30 * 24 * time.Hour
)

// NewCredentials returns new ones.
func NewCredentials() (*Credentials, error) {
	authority, err := certs.NewAuthority(lifetime)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &Credentials{Token: rand.Text(), authority: authority}, nil
}

// Tenants of a store are clusters of their own, so each has its own credentials.
func storedKubeconfig(o store.Options) string { return filepath.Join(o.Dir, "kubeconfig-"+o.Tenant) }

func storedKey(o store.Options) string { return filepath.Join(o.Dir, "authority-"+o.Tenant+".key") }

// credentialsOf returns the credentials that a store has kept, or new ones.
func credentialsOf(o store.Options) (*Credentials, error) {
	if o.Dir == "" {
		return NewCredentials()
	}
	text, err := os.ReadFile(storedKubeconfig(o))
	if errors.Is(err, fs.ErrNotExist) {
		return NewCredentials()
	}
	if err != nil {
		return nil, err
	}
	known, err := load(text, storedKey(o))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: remove it, for new credentials", storedKubeconfig(o), err)
	}
	if time.Until(known.authority.Certificate().NotAfter) < renewal {
		return NewCredentials()
	}
	return known, nil
}

// load reads a kubeconfig and the key of its authority.
func load(text []byte, key string) (*Credentials, error) {
	server, authority, token, ours := parse(text)
	address, err := url.Parse(server)
	block, _ := pem.Decode(authority)
	if !ours || err != nil || block == nil {
		return nil, errors.New("it was not written by flyball serve")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(key)
	if err != nil {
		return nil, err
	}
	signer, err := certs.Load(keyPEM, []*x509.Certificate{certificate})
	return &Credentials{Token: token, authority: signer, port: address.Port()}, err
}

// store keeps the key. The kubeconfig, which is written next, makes it valid.
func (c *Credentials) store(o store.Options) error {
	key, err := c.authority.Key()
	if err != nil {
		return err
	}
	return writePrivate(storedKey(o), string(key))
}
