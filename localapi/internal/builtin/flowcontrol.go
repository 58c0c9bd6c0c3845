package builtin

import (
	"math"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// flowSchema is only stored: this server does not queue requests. The objects that every cluster has do not exist.
func flowSchema() *resource.Definition {
	d := typed[flowcontrolv1.FlowSchema, flowcontrolv1.FlowSchemaList](flowcontrolv1.SchemeGroupVersion, "flowschemas")
	withStatus(d)
	withGeneration(d, "Spec")
	statusKeepsMetadata(d)
	d.Default = mutate(func(s *flowcontrolv1.FlowSchema) { setDefault(&s.Spec.MatchingPrecedence, 1000) })
	d.Validate = rules(validateFlowSchema)
	d.ValidateStatusUpdate = updateRules(func(f verify.Field, s, _ *flowcontrolv1.FlowSchema) {
		conditionTypes(f, s.Status.Conditions, func(c *flowcontrolv1.FlowSchemaCondition) string {
			return string(c.Type)
		})
	})
	listed(d, flowSchemaRow)
	return d
}

// conditionTypes requires conditions of different types.
func conditionTypes[C any](f verify.Field, conditions []C, kind func(*C) string) {
	seen := sets.New[string]()
	verify.Each(f, "status.conditions", conditions, func(f verify.Field, c *C) {
		verify.Unique(f, "type", seen, kind(c))
		f.Require("type", kind(c) != "", "")
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/flowcontrol/validation/validation.go ValidateFlowSchemaSpec.
func validateFlowSchema(f verify.Field, s *flowcontrolv1.FlowSchema) {
	const exempt, greatest = "exempt", 10_000
	f, spec := f.Child("spec"), &s.Spec
	n := spec.MatchingPrecedence
	f.Reject("matchingPrecedence", n <= 0, n, "must be a positive value")
	f.Rejectf("matchingPrecedence", n > greatest, n, "must not be greater than %d", greatest)
	f.Reject("matchingPrecedence", n == 1 && s.Name != exempt, n,
		"only the schema named 'exempt' may have matchingPrecedence 1")
	methods := []flowcontrolv1.FlowDistinguisherMethodType{
		flowcontrolv1.FlowDistinguisherMethodByNamespaceType, flowcontrolv1.FlowDistinguisherMethodByUserType,
	}
	if m := spec.DistinguisherMethod; m != nil && !slices.Contains(methods, m.Type) {
		f.Add(field.NotSupported(f.Path("distinguisherMethod.type"), shown(m), methods))
	}
	level := spec.PriorityLevelConfiguration.Name
	f.Require("priorityLevelConfiguration.name", level != "", "must reference a priority level")
	f.MatchIfSet("priorityLevelConfiguration.name", level, validation.IsDNS1123Subdomain)
	verify.Each(f, "rules", spec.Rules, validateFlowRule)
}

func validateFlowRule(f verify.Field, r *flowcontrolv1.PolicyRulesWithSubjects) {
	f.Require("subjects", len(r.Subjects) > 0, "subjects must contain at least one value")
	verify.Each(f, "subjects", r.Subjects, validateFlowSubject)
	f.Require("", len(r.ResourceRules) > 0 || len(r.NonResourceRules) > 0,
		"at least one of resourceRules and nonResourceRules has to be non-empty")
	verify.Each(f, "resourceRules", r.ResourceRules, func(f verify.Field, rule *flowcontrolv1.ResourcePolicyRule) {
		flowVerbs(f, rule.Verbs)
		wildcards(f, "apiGroups", rule.APIGroups, "resource rules must supply at least one api group", "api groups")
		wildcards(f, "resources", rule.Resources, "resource rules must supply at least one resource", "resources")
		flowNamespaces(f, rule)
	})
	verify.Each(f, "nonResourceRules", r.NonResourceRules, func(f verify.Field,
		rule *flowcontrolv1.NonResourcePolicyRule,
	) {
		flowVerbs(f, rule.Verbs)
		if wildcards(f, "nonResourceURLs", rule.NonResourceURLs, "nonResourceURLs must contain at least one value",
			"non-resource URLs") {
			verify.Each(f, "nonResourceURLs", rule.NonResourceURLs, func(f verify.Field, url *string) {
				problem := urlProblem(*url)
				f.Reject("", problem != "", *url, problem)
			})
		}
	})
}

// wildcards validates a list that either contains only "*" or names things. It reports whether the list names some.
func wildcards(f verify.Field, name string, list []string, missing, what string) bool {
	wild := slices.Contains(list, "*")
	f.Require(name, len(list) > 0, missing)
	f.Reject(name, wild && len(list) > 1, list, "if '*' is present, must not specify other "+what)
	return len(list) > 0 && !wild
}

func flowVerbs(f verify.Field, list []string) {
	verbs := sets.New("get", "list", "create", "update", "delete", "deletecollection", "patch", "watch", "proxy")
	if wildcards(f, "verbs", list, "verbs must contain at least one value", "verbs") && !verbs.HasAll(list...) {
		f.Add(field.NotSupported(f.Path("verbs"), list, sets.List(verbs)))
	}
}

func flowNamespaces(f verify.Field, r *flowcontrolv1.ResourcePolicyRule) {
	if len(r.Namespaces) == 0 && r.ClusterScope || !wildcards(f, "namespaces", r.Namespaces,
		"resource rules that are not cluster scoped must supply at least one namespace", "namespaces") {
		return
	}
	verify.Each(f, "namespaces", r.Namespaces, func(f verify.Field, name *string) {
		for _, problem := range validation.IsDNS1123Label(*name) {
			f.Reject("", true, *name, "each member of this list must be '*' or a DNS-1123 label; "+problem)
		}
	})
}

// urlProblem returns why a path of a request cannot be matched, or "".
func urlProblem(url string) string {
	switch n := strings.Count(url, "*"); {
	case url == "":
		return "must not be empty"
	case !strings.HasPrefix(url, "/"):
		return "must start with slash"
	case strings.Contains(url, " "):
		return "must not contain white-space"
	case strings.Contains(url, "//"):
		return "must not contain double slash"
	case n > 1, n == 1 && !strings.HasSuffix(url, "/*"):
		return "wildcard can only do suffix matching"
	}
	return ""
}

// validateFlowSubject requires the field of a subject's kind, and rejects those of the others.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/flowcontrol/validation/validation.go ValidateFlowSchemaSubject.
func validateFlowSubject(f verify.Field, s *flowcontrolv1.Subject) {
	account, user, group := flowcontrolv1.SubjectKindServiceAccount, flowcontrolv1.SubjectKindUser,
		flowcontrolv1.SubjectKindGroup
	if !slices.Contains([]flowcontrolv1.SubjectKind{group, account, user}, s.Kind) {
		verify.Supported(f, "kind", s.Kind, group, account, user)
		return
	}
	needs := func(name string, kind flowcontrolv1.SubjectKind, set bool) bool {
		f.Require(name, kind != s.Kind || set, name+" is required when subject kind is '"+string(kind)+"'")
		return kind == s.Kind && set
	}
	if needs("serviceAccount", account, s.ServiceAccount != nil) {
		validateFlowAccount(f.Child("serviceAccount"), s.ServiceAccount)
	}
	if needs("user", user, s.User != nil) {
		f.Require("user.name", s.User.Name != "", "")
	}
	if needs("group", group, s.Group != nil) {
		f.Require("group.name", s.Group.Name != "", "")
	}
	forbid := func(name string, kind flowcontrolv1.SubjectKind, set bool) {
		f.Forbid(name, kind != s.Kind && set, name+" is forbidden when subject kind is not '"+string(kind)+"'")
	}
	forbid("serviceAccount", account, s.ServiceAccount != nil)
	forbid("user", user, s.User != nil)
	forbid("group", group, s.Group != nil)
}

func validateFlowAccount(f verify.Field, a *flowcontrolv1.ServiceAccountSubject) {
	if a.Name != flowcontrolv1.NameAll {
		f.RequireMatch("name", a.Name, validation.IsDNS1123Subdomain)
	}
	f.Require("namespace", a.Namespace != "", "must specify namespace for service account")
	f.MatchIfSet("namespace", a.Namespace, validation.IsDNS1123Label)
}

func flowSchemaRow(s *flowcontrolv1.FlowSchema) []cell {
	doc, method, dangling := flowcontrolv1.FlowSchemaSpec{}.SwaggerDoc(), "<none>", "?"
	if m := s.Spec.DistinguisherMethod; m != nil {
		method = string(m.Type)
	}
	for _, c := range s.Status.Conditions {
		if c.Type == flowcontrolv1.FlowSchemaConditionDangling {
			dangling = string(c.Status)
		}
	}
	return []cell{
		column("PriorityLevel", "string", flowcontrolv1.PriorityLevelConfigurationReference{}.SwaggerDoc()["name"],
			s.Spec.PriorityLevelConfiguration.Name),
		column("MatchingPrecedence", "string", doc["matchingPrecedence"], int64(s.Spec.MatchingPrecedence)),
		column("DistinguisherMethod", "string", doc["distinguisherMethod"], method),
		ageCell,
		column("MissingPL", "string", "references a broken or non-existent PriorityLevelConfiguration", dangling),
	}
}

func priorityLevelConfiguration() *resource.Definition {
	d := typed[flowcontrolv1.PriorityLevelConfiguration, flowcontrolv1.PriorityLevelConfigurationList](
		flowcontrolv1.SchemeGroupVersion, "prioritylevelconfigurations")
	withStatus(d)
	withGeneration(d, "Spec")
	statusKeepsMetadata(d)
	d.Default = mutate(defaultPriorityLevel)
	d.Validate = rules(validatePriorityLevel)
	d.ValidateStatusUpdate = updateRules(func(f verify.Field, l, _ *flowcontrolv1.PriorityLevelConfiguration) {
		conditionTypes(f, l.Status.Conditions, func(c *flowcontrolv1.PriorityLevelConfigurationCondition) string {
			return string(c.Type)
		})
	})
	listed(d, priorityLevelRow)
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/flowcontrol/v1/defaults.go.
func defaultPriorityLevel(l *flowcontrolv1.PriorityLevelConfiguration) {
	if e := l.Spec.Exempt; e != nil {
		setDefaultPtr(&e.NominalConcurrencyShares, 0)
		setDefaultPtr(&e.LendablePercent, 0)
	}
	if e := l.Spec.Limited; e != nil {
		setDefaultPtr(&e.NominalConcurrencyShares, 30)
		setDefaultPtr(&e.LendablePercent, 0)
		if q := e.LimitResponse.Queuing; q != nil {
			setDefault(&q.HandSize, 8)
			setDefault(&q.Queues, 64)
			setDefault(&q.QueueLengthLimit, 50)
		}
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/flowcontrol/validation/validation.go ValidatePriorityLevelConfiguration.
func validatePriorityLevel(f verify.Field, l *flowcontrolv1.PriorityLevelConfiguration) {
	const preserve = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
	_, preserved := l.Annotations[preserve]
	f.Forbid("metadata.annotations", preserved, "annotation '"+preserve+"' is forbidden")
	f, spec := f.Child("spec"), &l.Spec
	exempt, limited := flowcontrolv1.PriorityLevelEnablementExempt, flowcontrolv1.PriorityLevelEnablementLimited
	f.Reject("type", (l.Name == "exempt") != (spec.Type == exempt), spec.Type,
		"must be 'Exempt' if and only if `name` is 'exempt'")
	if !f.Passes(func(f verify.Field) { verify.OneOf(f, "type", spec.Type, exempt, limited) }) {
		return
	}
	if e := spec.Exempt; e != nil && spec.Type == exempt {
		validateShares(f.Child("exempt"), e.NominalConcurrencyShares, e.LendablePercent)
	}
	f.Forbid("exempt", spec.Exempt != nil && spec.Type != exempt, "")
	f.Forbid("limited", spec.Limited != nil && spec.Type == exempt, "")
	f.Require("limited", spec.Limited != nil || spec.Type == exempt, "")
	if spec.Limited != nil && spec.Type == limited {
		validateLimited(f.Child("limited"), spec.Limited)
	}
}

func validateLimited(f verify.Field, l *flowcontrolv1.LimitedPriorityLevelConfiguration) {
	validateShares(f, l.NominalConcurrencyShares, nil)
	validateLimitResponse(f.Child("limitResponse"), &l.LimitResponse)
	validateShares(f, nil, l.LendablePercent)
	b := l.BorrowingLimitPercent
	f.Reject("borrowingLimitPercent", b != nil && *b < 0, b, "if specified, must be a non-negative integer")
}

func validateShares(f verify.Field, nominal, lendable *int32) {
	f.Reject("nominalConcurrencyShares", nominal != nil && *nominal < 0, nominal, "must be a non-negative integer")
	f.Reject("lendablePercent", lendable != nil && (*lendable < 0 || *lendable > 100), lendable,
		"must be between 0 and 100, inclusive")
}

func validateLimitResponse(f verify.Field, r *flowcontrolv1.LimitResponse) {
	switch r.Type {
	case flowcontrolv1.LimitResponseTypeReject:
		f.Forbid("queuing", r.Queuing != nil, "")
	case flowcontrolv1.LimitResponseTypeQueue:
		f.Require("queuing", r.Queuing != nil, "")
		if r.Queuing != nil {
			validateQueues(f.Child("queuing"), r.Queuing)
		}
	default:
		verify.OneOf(f, "type", r.Type, flowcontrolv1.LimitResponseTypeQueue, flowcontrolv1.LimitResponseTypeReject)
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/flowcontrol/validation/validation.go
// ValidatePriorityLevelQueuingConfiguration; k8s.io/apiserver pkg/util/shufflesharding RequiredEntropyBits.
func validateQueues(f verify.Field, q *flowcontrolv1.QueuingConfiguration) {
	const most, hashBits = 10_000_000, 60
	f.Reject("queueLengthLimit", q.QueueLengthLimit <= 0, q.QueueLengthLimit, "must be positive")
	f.Reject("queues", q.Queues <= 0, q.Queues, "must be positive")
	f.Rejectf("queues", q.Queues > most, q.Queues, "must not be greater than %d", most)
	switch entropy := math.Ceil(math.Log2(float64(q.Queues)) * float64(q.HandSize)); {
	case q.HandSize <= 0:
		f.Reject("handSize", true, q.HandSize, "must be positive")
	case q.HandSize > q.Queues:
		f.Rejectf("handSize", true, q.HandSize, "should not be greater than queues (%d)", q.Queues)
	case entropy > hashBits:
		f.Rejectf("handSize", true, q.HandSize,
			"required entropy bits of deckSize %d and handSize %d should not be greater than %d", q.Queues, q.HandSize,
			hashBits)
	}
}

func priorityLevelRow(l *flowcontrolv1.PriorityLevelConfiguration) []cell {
	doc := flowcontrolv1.QueuingConfiguration{}.SwaggerDoc()
	var nominal, queues, hand, length any = "<none>", "<none>", "<none>", "<none>"
	if e := l.Spec.Limited; e != nil {
		nominal = ptr.Deref(e.NominalConcurrencyShares, 0)
		if q := e.LimitResponse.Queuing; q != nil {
			queues, hand, length = q.Queues, q.HandSize, q.QueueLengthLimit
		}
	}
	return []cell{
		column("Type", "string", flowcontrolv1.PriorityLevelConfigurationSpec{}.SwaggerDoc()["type"],
			string(l.Spec.Type)),
		column("NominalConcurrencyShares", "string",
			flowcontrolv1.LimitedPriorityLevelConfiguration{}.SwaggerDoc()["nominalConcurrencyShares"], nominal),
		column("Queues", "string", doc["queues"], queues),
		column("HandSize", "string", doc["handSize"], hand),
		column("QueueLengthLimit", "string", doc["queueLengthLimit"], length),
	}
}
