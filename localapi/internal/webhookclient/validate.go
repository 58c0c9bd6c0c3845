package webhookclient

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/transport"
)

// ValidateTarget validates what names a webhook in a configuration: a URL or a Service, and not both.
//
// Source: k8s.io/apiserver v0.37.2 pkg/util/webhook/validation.go, also for ValidateBundle.
func ValidateTarget(url *string, s *Service, path *field.Path) field.ErrorList {
	switch {
	case (url == nil) == (s == nil):
		return field.ErrorList{field.Required(path, "exactly one of url or service is required")}
	case url != nil:
		return validateURL(*url, path.Child("url"))
	}
	return validateService(s, path.Child("service"))
}

// ValidateBundle validates the certificates that a webhook is trusted by.
func ValidateBundle(bundle []byte, path *field.Path) field.ErrorList {
	_, err := transport.TLSConfigFor(&transport.Config{TLS: transport.TLSConfig{CAData: bundle}})
	if err != nil {
		return field.ErrorList{field.Invalid(path, bundle, err.Error())}
	}
	return nil
}

func validateURL(text string, path *field.Path) (errs field.ErrorList) {
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(text)
	if err != nil {
		return field.ErrorList{field.Required(path, "url must be a valid URL: "+err.Error()+form)}
	}
	if u.Scheme != "https" {
		errs = append(errs, field.Invalid(path, u.Scheme, "'https' is the only allowed URL scheme"+form))
	}
	if u.Host == "" {
		errs = append(errs, field.Invalid(path, u.Host, "host must be specified"+form))
	}
	if u.User != nil {
		errs = append(errs, field.Invalid(path, u.User.String(), "user information is not permitted in the URL"))
	}
	if u.Fragment != "" {
		errs = append(errs, field.Invalid(path, u.Fragment, "fragments are not permitted in the URL"))
	}
	if u.RawQuery != "" {
		errs = append(errs, field.Invalid(path, u.RawQuery, "query parameters are not permitted in the URL"))
	}
	return errs
}

func validateService(s *Service, path *field.Path) (errs field.ErrorList) {
	// The real server confuses name and namespace here.
	if s.Namespace == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	if s.Name == "" {
		errs = append(errs, field.Required(path.Child("namespace"), ""))
	}
	if problems := validation.IsValidPortNum(int(s.Port)); problems != nil {
		errs = append(errs, field.Invalid(path.Child("port"), s.Port, "port is not valid: "+
			strings.Join(problems, ", ")))
	}
	at := path.Child("path")
	switch p := s.Path; {
	case p == "" || p == "/":
	case p == "//":
		errs = append(errs, field.Invalid(at, p, "segment[0] may not be empty"))
	default:
		if p[0] != '/' {
			errs = append(errs, field.Invalid(at, p, "must start with a '/'"))
		}
		errs = append(errs, validateSegments(p, at)...)
	}
	return errs
}

// validateSegments validates what is between the slashes of a path.
func validateSegments(p string, path *field.Path) (errs field.ErrorList) {
	for i, segment := range strings.Split(strings.TrimSuffix(p[1:], "/"), "/") {
		if segment == "" {
			errs = append(errs, field.Invalid(path, p, fmt.Sprintf("segment[%d] may not be empty", i)))
			continue
		}
		for _, problem := range validation.IsDNS1123Subdomain(segment) {
			errs = append(errs, field.Invalid(path, p, fmt.Sprintf("segment[%d]: %v", i, problem)))
		}
	}
	return errs
}

// ValidateVersions validates the versions of reviews that a webhook understands. missing says more of an empty list.
func ValidateVersions(versions []string, missing string, path *field.Path) (errs field.ErrorList) {
	known := []string{"v1", "v1beta1"}
	if len(versions) == 0 {
		return field.ErrorList{field.Required(path, missing)}
	}
	for i, v := range versions {
		if slices.Contains(versions[:i], v) {
			errs = append(errs, field.Invalid(path.Index(i), v, "duplicate version"))
			continue
		}
		for _, problem := range validation.IsDNS1035Label(v) {
			errs = append(errs, field.Invalid(path.Index(i), v, problem))
		}
	}
	if !slices.ContainsFunc(versions, func(v string) bool { return slices.Contains(known, v) }) {
		errs = append(errs, field.Invalid(path, versions, "must include at least one of "+strings.Join(known, ", ")))
	}
	return errs
}
