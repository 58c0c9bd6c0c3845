package impersonation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/internal/rbac"
)

// mode is a way to allow an impersonation. A constrained mode, which has a name, requires two permissions: the verb
// "impersonate:NAME" on the parts of the wanted user, and "impersonate-on:NAME:VERB" on the object of the request. The
// last mode, which is older, requires only the verb "impersonate" on the parts of the user, and then allows every
// request.
type mode struct {
	name  string
	isFor func(requestor, wanted auth.User) bool
}

// modes are tried in this order.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/filters/impersonation/mode.go.
var modes = []mode{
	{"associated-node", func(requestor, wanted auth.User) bool {
		node, ok := nodeOf(wanted.Name)
		_, _, account := auth.SplitServiceAccount(requestor.Name)
		on := requestor.Extra[nodeNameKey]
		return ok && account && onlyNamed(wanted) && len(on) == 1 && on[0] == node
	}},
	{"arbitrary-node", func(_, wanted auth.User) bool {
		_, ok := nodeOf(wanted.Name)
		return ok && onlyNamed(wanted)
	}},
	{"serviceaccount", func(_, wanted auth.User) bool {
		_, _, ok := auth.SplitServiceAccount(wanted.Name)
		return ok && onlyNamed(wanted)
	}},
	{"user-info", func(_, wanted auth.User) bool {
		_, node := nodeOf(wanted.Name)
		_, _, account := auth.SplitServiceAccount(wanted.Name)
		return !node && !account
	}},
	{"", func(_, _ auth.User) bool { return true }},
}

// nodeNameKey is the extra value that names the node of a pod. The token of a pod's service account has it.
const nodeNameKey = "authentication.kubernetes.io/node-name"

// nodeOf returns the node whose user has that name.
func nodeOf(user string) (node string, ok bool) {
	node, ok = strings.CutPrefix(user, "system:node:")
	return node, ok && len(apivalidation.NameIsDNSSubdomain(node, false)) == 0
}

func onlyNamed(u auth.User) bool { return u.UID == "" && len(u.Groups) == 0 && len(u.Extra) == 0 }

// many is the number of groups or extra values from which a constrained mode first asks for all at once.
const many = 4

// check is one attempt.
type check struct {
	authorizer *rbac.Authorizer
	mode       *mode
	requestor  auth.User
}

func (c *check) constrained() bool { return c.mode.name != "" }

// allows returns the resulting user. Errors: Forbidden.
func (c *check) allows(wanted auth.User, a rbac.Attributes) (auth.User, error) {
	if c.constrained() {
		a.Verb = "impersonate-on:" + c.mode.name + ":" + a.Verb
		if err := c.authorizer.Check(c.requestor, a); err != nil {
			return auth.User{}, err
		}
	}
	as := wanted
	groups, err := c.name(wanted)
	if err != nil {
		return as, err
	}
	if len(as.Groups) == 0 {
		as.Groups = groups
	}
	if wanted.UID != "" {
		if err := c.ask(c.part("uids", wanted.UID)); err != nil {
			return as, err
		}
	}
	if err := c.groups(wanted.Groups); err != nil {
		return as, err
	}
	if err := c.extra(wanted.Extra); err != nil {
		return as, err
	}
	return as.Grouped(), nil
}

func (c *check) part(resource, name string) rbac.Attributes {
	a := rbac.Attributes{Verb: "impersonate", Group: authenticationv1.GroupName, Resource: resource, Name: name}
	if c.constrained() {
		a.Verb += ":" + c.mode.name
	} else if resource != "uids" && resource != "userextras" {
		a.Group = ""
	}
	return a
}

func (c *check) ask(a rbac.Attributes) error { return c.authorizer.Check(c.requestor, a) }

// name checks the user's name, and returns the groups that follow from it.
func (c *check) name(wanted auth.User) (groups []string, err error) {
	a := c.part("users", wanted.Name)
	node, isNode := nodeOf(wanted.Name)
	if namespace, name, ok := auth.SplitServiceAccount(wanted.Name); ok {
		a.Resource, a.Namespace, a.Name = "serviceaccounts", namespace, name
		groups = auth.ServiceAccount(namespace, name).Groups
	} else if c.constrained() && isNode {
		a.Resource, a.Name = "nodes", node
		groups = []string{"system:nodes"}
		if c.mode.name == "associated-node" {
			a.Name = "*" // the mode is for the node that the requestor runs on, whichever that is
		}
	}
	return groups, c.ask(a)
}

func (c *check) groups(groups []string) error {
	if len(groups) == 0 {
		return nil
	}
	if c.constrained() {
		switch masters := c.part("groups", auth.Masters); {
		case slices.Contains(groups, ""):
			return rbac.Forbidden(c.requestor, c.part("groups", ""),
				"impersonating the empty string group is not allowed")
		case slices.Contains(groups, auth.Masters):
			return rbac.Forbidden(c.requestor, masters, "impersonating the system:masters group is not allowed")
		case len(groups) >= many && c.ask(c.part("groups", "*")) == nil:
			return nil
		}
	}
	for _, group := range groups {
		if err := c.ask(c.part("groups", group)); err != nil {
			return err
		}
	}
	return nil
}

// extra checks each value. (The real server checks them in the random order of a map.)
func (c *check) extra(extra map[string][]string) error {
	values := 0
	for _, v := range extra {
		values += len(v)
	}
	if values == 0 {
		return nil
	}
	a := c.part("userextras", "")
	if c.constrained() {
		if err := validExtra(extra); err != nil {
			return rbac.Forbidden(c.requestor, a, err.Error())
		}
		a.Subresource, a.Name = "*", "*"
		if values >= many && c.ask(a) == nil {
			return nil
		}
	}
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		for _, value := range extra[key] {
			a.Subresource, a.Name = key, value
			if err := c.ask(a); err != nil {
				return err
			}
		}
	}
	return nil
}

// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/filters/impersonation/mode.go validateExtra.
func validExtra(extra map[string][]string) error {
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		problems := utilvalidation.IsDomainPrefixedPath(field.NewPath("extra", "key"), key)
		switch {
		case key == "":
			return errors.New("impersonating the empty string key in extra is not allowed")
		case len(problems) > 0:
			return fmt.Errorf("impersonating an invalid key in extra is not allowed: %w", problems.ToAggregate())
		case key != strings.ToLower(key):
			return fmt.Errorf("impersonating a non-lowercase key in extra is not allowed: %q", key)
		case slices.Contains(extra[key], ""):
			return errors.New("impersonating the empty string value in extra is not allowed")
		}
	}
	return nil
}
