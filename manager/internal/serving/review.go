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

// Reviewer authorizes requests. It asks the API server which user sent a request, and whether this user may use the
// request's method on its path. If the review fails, the request is rejected.
//
// Source: controller-runtime v0.25.2 pkg/metrics/filters, for the reviews.
type Reviewer struct {
	tokens *gentype.Client[*authenticationv1.TokenReview]
	access *gentype.Client[*authorizationv1.SubjectAccessReview]

	// Reviews have their own rate limits, so that a flood of requests does not slow down the controllers. Users that
	// the API server knows have one, and all others another, so that strangers do not slow down known users. logs
	// limits the lines about reviews that failed.
	unknownUsers, known, logs flowcontrol.RateLimiter

	mu sync.Mutex
	// decided has the last decisions, and users the tokens that the API server has known lately.
	// Invariant: each holds at most maxRemembered elements.
	decided map[grant]decision
	users   map[tokenHash]time.Time
}

type tokenHash [sha256.Size]byte

// grant is a token, a path and a verb.
type grant struct {
	token      tokenHash
	path, verb string
}

// decision is the status for a request, and the time until which it is valid.
type decision struct {
	code  int
	until time.Time
}

const (
	reviewTimeout   = 5 * time.Second
	keepDecisionFor = 10 * time.Second
	keepTokenFor    = 10 * time.Minute
	maxRemembered   = 1000
)

// NewReviewer returns a reviewer that asks the API server of config.
func NewReviewer(config *rest.Config) (*Reviewer, error) {
	own := rest.AddUserAgent(rest.CopyConfig(config), "review")
	own.Timeout = reviewTimeout
	own.RateLimiter, own.QPS = nil, -1
	tokens, err1 := groupclient.New(own, authenticationv1.SchemeGroupVersion)
	access, err2 := groupclient.New(own, authorizationv1.SchemeGroupVersion)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("client of reviews: %w", err)
	}
	return &Reviewer{
		tokens:  groupclient.Resource[*authenticationv1.TokenReview](tokens, "tokenreviews", ""),
		access:  groupclient.Resource[*authorizationv1.SubjectAccessReview](access, "subjectaccessreviews", ""),
		decided: map[grant]decision{}, users: map[tokenHash]time.Time{},
		unknownUsers: flowcontrol.NewTokenBucketRateLimiter(5, 10), known: flowcontrol.NewTokenBucketRateLimiter(5, 10),
		logs: flowcontrol.NewTokenBucketRateLimiter(0.1, 5),
	}, nil
}

// Guard returns a handler that passes allowed requests to next and rejects the others.
func (v *Reviewer) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch code := v.decide(r); code {
		case http.StatusOK:
			next.ServeHTTP(w, r)
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", "Bearer")
			Answer(w, code, "Unauthorized: a bearer token is needed that the API server knows")
		case http.StatusTooManyRequests:
			w.Header().Set("Retry-After", "1")
			Answer(w, code, "Too Many Requests: too many tokens are waiting to be reviewed, try again later")
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

// decide returns http.StatusOK for an allowed request, and otherwise the status with which to reject it. Without a
// token, it rejects a request without asking the API server.
func (v *Reviewer) decide(r *http.Request) int {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return http.StatusUnauthorized
	}
	asked := grant{sha256.Sum256([]byte(token)), r.URL.Path, strings.ToLower(r.Method)}
	code, known := v.remembered(asked)
	if code != 0 {
		return code
	}
	limiter := v.unknownUsers
	if known {
		limiter = v.known
	}
	if !limiter.TryAccept() {
		return http.StatusTooManyRequests
	}
	code, err := v.review(r.Context(), token, asked.path, asked.verb)
	if err != nil {
		if v.logs.TryAccept() {
			klog.FromContext(r.Context()).Error(err, "Review failed, refusing the request", "path", r.URL.Path)
		}
		return code
	}
	v.remember(asked, code)
	return code
}

// review returns http.StatusOK if the token's user may use the verb on the path.
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

// remembered returns the decision about a request, 0 if there is none, and whether the API server knows the token.
func (v *Reviewer) remembered(g grant) (code int, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if d := v.decided[g]; now.Before(d.until) {
		code = d.code
	}
	return code, now.Before(v.users[g.token])
}

func (v *Reviewer) remember(g grant, code int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.decided) >= maxRemembered {
		clear(v.decided)
	}
	if len(v.users) >= maxRemembered {
		clear(v.users)
	}
	now := time.Now()
	v.decided[g] = decision{code, now.Add(keepDecisionFor)}
	if code != http.StatusUnauthorized {
		v.users[g.token] = now.Add(keepTokenFor)
	}
}
