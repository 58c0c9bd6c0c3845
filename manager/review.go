package manager

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// reviewer asks the API server who somebody is, and whether he may read a path. Whatever goes wrong, the answer is no.
//
// Source: the filter of controller-runtime v0.25.2 pkg/metrics/filters, for what is asked.
type reviewer struct {
	// client has a rate limit of its own: who floods us with tokens does not slow the controllers down.
	client kubernetes.Interface

	mu sync.Mutex
	// allowed holds, for what was allowed, until when nobody is asked again. Invariant: at most mostAllowed elements.
	allowed map[grant]time.Time
}

// grant is a path and a token, of which only the hash is kept.
type grant struct {
	token [sha256.Size]byte
	path  string
}

const (
	reviewTimeout = 5 * time.Second
	allowedFor    = 10 * time.Second
	mostAllowed   = 1000
)

func newReviewer(config *rest.Config) (*reviewer, error) {
	own := rest.AddUserAgent(rest.CopyConfig(config), "review")
	own.QPS, own.Burst, own.RateLimiter, own.Timeout = 5, 10, nil, reviewTimeout
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("client of reviews: %w", err)
	}
	return &reviewer{client: client, allowed: map[grant]time.Time{}}, nil
}

// guard lets those requests through to next that are allowed.
func (v *reviewer) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch code := v.decide(r); code {
		case http.StatusOK:
			next.ServeHTTP(w, r)
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", "Bearer")
			answer(w, code, "Unauthorized: a bearer token is needed that the API server knows")
		default:
			answer(w, code, http.StatusText(code))
		}
	})
}

// choose lets the allowed have the words, and everybody else the brief answer.
func (v *reviewer) choose(words, brief http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v.decide(r) == http.StatusOK {
			words.ServeHTTP(w, r)
			return
		}
		brief.ServeHTTP(w, r)
	})
}

// decide returns http.StatusOK for a request that is allowed, else why not. Without a token the API server is not asked.
func (v *reviewer) decide(r *http.Request) int {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return http.StatusUnauthorized
	}
	asked := grant{sha256.Sum256([]byte(token)), r.URL.Path}
	if v.remembers(asked) {
		return http.StatusOK
	}
	code, err := v.review(r.Context(), token, r.URL.Path)
	if err != nil {
		klog.FromContext(r.Context()).Error(err, "Review failed, the request is refused", "path", r.URL.Path)
	}
	if code == http.StatusOK {
		v.remember(asked)
	}
	return code
}

// review returns http.StatusOK for who may get the path.
func (v *reviewer) review(ctx context.Context, token, path string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	who, err := v.client.AuthenticationV1().TokenReviews().Create(ctx,
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
	may, err := v.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
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

func (v *reviewer) remembers(g grant) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return time.Now().Before(v.allowed[g])
}

func (v *reviewer) remember(g grant) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.allowed) >= mostAllowed {
		clear(v.allowed)
	}
	v.allowed[g] = time.Now().Add(allowedFor)
}
