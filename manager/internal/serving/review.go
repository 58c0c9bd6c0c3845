package serving

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/groupclient"
)

// Reviewer asks the API server which user sent a request, and whether that user may do with its path what the method
// says. If the review fails, the request is refused.
//
// Source: the filter of controller-runtime v0.25.2 pkg/metrics/filters, for what is asked.
type Reviewer struct {
	// The clients have their own rate limit, so that a flood of tokens does not slow down the controllers.
	tokens *gentype.Client[*authenticationv1.TokenReview]
	access *gentype.Client[*authorizationv1.SubjectAccessReview]

	mu sync.Mutex
	// allowed holds the time until which each allowed request needs no further review. Invariant: it holds at most
	// mostAllowed elements.
	allowed map[grant]time.Time
}

// grant is the hash of a token, a path, and what may be done with it.
type grant struct {
	token      [sha256.Size]byte
	path, verb string
}

const (
	reviewTimeout = 5 * time.Second
	allowedFor    = 10 * time.Second
	mostAllowed   = 1000
)

// NewReviewer returns a reviewer that asks the API server of config.
func NewReviewer(config *rest.Config) (*Reviewer, error) {
	own := rest.AddUserAgent(rest.CopyConfig(config), "review")
	own.Timeout = reviewTimeout
	own.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(5, 10) // shared by both kinds of reviews
	tokens, err1 := groupclient.New(own, authenticationv1.SchemeGroupVersion)
	access, err2 := groupclient.New(own, authorizationv1.SchemeGroupVersion)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("client of reviews: %w", err)
	}
	return &Reviewer{
		tokens:  groupclient.Resource[*authenticationv1.TokenReview](tokens, "tokenreviews", ""),
		access:  groupclient.Resource[*authorizationv1.SubjectAccessReview](access, "subjectaccessreviews", ""),
		allowed: map[grant]time.Time{},
	}, nil
}

// Guard returns a handler that passes allowed requests to next and refuses the others.
func (v *Reviewer) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch code := v.decide(r); code {
		case http.StatusOK:
			next.ServeHTTP(w, r)
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", "Bearer")
			Answer(w, code, "Unauthorized: a bearer token is needed that the API server knows")
		default:
			Answer(w, code, http.StatusText(code))
		}
	})
}

// Choose returns a handler that passes allowed requests to words and all others to brief.
func (v *Reviewer) Choose(words, brief http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v.decide(r) == http.StatusOK {
			words.ServeHTTP(w, r)
			return
		}
		brief.ServeHTTP(w, r)
	})
}

// decide returns http.StatusOK for an allowed request, or else the status with which to refuse it. It does not ask the
// API server about a request without a token.
func (v *Reviewer) decide(r *http.Request) int {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return http.StatusUnauthorized
	}
	asked := grant{sha256.Sum256([]byte(token)), r.URL.Path, strings.ToLower(r.Method)}
	if v.remembers(asked) {
		return http.StatusOK
	}
	code, err := v.review(r.Context(), token, asked.path, asked.verb)
	if err != nil {
		klog.FromContext(r.Context()).Error(err, "Review failed, refusing the request", "path", r.URL.Path)
	}
	if code == http.StatusOK {
		v.remember(asked)
	}
	return code
}

// review returns http.StatusOK if the token's user may do that with the path.
func (v *Reviewer) review(ctx context.Context, token, path, verb string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	who, err := v.tokens.Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return http.StatusInternalServerError, fmt.Errorf("token review: %w", err)
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	may, err := v.access.Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return http.StatusInternalServerError, fmt.Errorf("access review: %w", err)
	}
	if !may.Status.Allowed || may.Status.Denied {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

func (v *Reviewer) remembers(g grant) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return time.Now().Before(v.allowed[g])
}

func (v *Reviewer) remember(g grant) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.allowed) >= mostAllowed {
		clear(v.allowed)
	}
	v.allowed[g] = time.Now().Add(allowedFor)
}
