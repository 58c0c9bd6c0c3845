package tokens

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// claims are the content of a token.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/serviceaccount/claims.go.
type claims struct {
	Audience   []string `json:"aud"`
	Expires    int64    `json:"exp"` // seconds since 1970, as the others
	IssuedAt   int64    `json:"iat"`
	Issuer     string   `json:"iss"`
	ID         string   `json:"jti"`
	NotBefore  int64    `json:"nbf"`
	Subject    string   `json:"sub"`
	Kubernetes about    `json:"kubernetes.io"`
}

// about is what a token is bound to. The token becomes invalid with the first of them.
type about struct {
	Namespace      string `json:"namespace"`
	Node           *ref   `json:"node,omitempty"`
	Pod            *ref   `json:"pod,omitempty"`
	Secret         *ref   `json:"secret,omitempty"`
	ServiceAccount ref    `json:"serviceaccount"`
}

type ref struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// header is the header of all tokens: the way they are signed.
var header = encode([]byte(`{"alg":"EdDSA","typ":"JWT"}`))

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// sign returns a token with the claims.
func sign(c claims, key ed25519.PrivateKey) (string, error) {
	payload, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	signed := header + "." + encode(payload)
	return signed + "." + encode(ed25519.Sign(key, []byte(signed))), nil
}

var errNotOurs = errors.New("not a token of this server")

// verify parses and verifies a token. Errors: errNotOurs.
func verify(token string, key ed25519.PublicKey) (claims, error) {
	var c claims
	parts := strings.Split(token, ".")
	if len(parts) != 3 || parts[0] != header {
		return c, errNotOurs
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !ed25519.Verify(key, []byte(parts[0]+"."+parts[1]), signature) {
		return c, errNotOurs
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &c) != nil {
		return c, errNotOurs
	}
	return c, nil
}
