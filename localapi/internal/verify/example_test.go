package verify_test

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

func ExampleErrors() {
	rules := func(f verify.Field, spec *corev1.ServiceSpec) {
		names := sets.New[string]()
		verify.Each(f, "ports", spec.Ports, func(f verify.Field, p *corev1.ServicePort) {
			f.RequireMatch("name", p.Name, validation.IsDNS1123Label)
			verify.Unique(f, "name", names, p.Name)
			f.Reject("port", p.Port == 0, p.Port, "must not be 0")
			verify.Supported(f, "protocol", p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP)
		})
		f.Forbid("clusterIP", spec.Type == corev1.ServiceTypeExternalName && spec.ClusterIP != "", "")
	}
	spec := &corev1.ServiceSpec{
		Type: corev1.ServiceTypeExternalName, ClusterIP: "10.0.0.1",
		Ports: []corev1.ServicePort{
			{Name: "web", Port: 80, Protocol: corev1.ProtocolTCP},
			{Name: "web", Protocol: corev1.ProtocolSCTP},
			{Port: 81, Protocol: corev1.ProtocolUDP},
		},
	}
	errs := verify.Errors(field.NewPath("spec"), func(f verify.Field) { rules(f, spec) })
	for _, err := range errs {
		fmt.Println(err)
	}
	// Output:
	// spec.ports[1].name: Duplicate value: "web"
	// spec.ports[1].port: Invalid value: 0: must not be 0
	// spec.ports[1].protocol: Unsupported value: "SCTP": supported values: "TCP", "UDP"
	// spec.ports[2].name: Required value
	// spec.clusterIP: Forbidden
}

func ExampleField_Passes() {
	lower := func(text string) []string {
		if text != strings.ToLower(text) {
			return []string{"must be in lower case"}
		}
		return nil
	}
	for _, name := range []string{"Kube", "kube"} {
		fmt.Println(verify.Errors(nil, func(f verify.Field) {
			if f.Passes(func(f verify.Field) { f.Match("name", name, lower) }) {
				f.Reject("name", name == "kube", name, "is reserved")
			}
		}).ToAggregate())
	}
	// Output:
	// name: Invalid value: "Kube": must be in lower case
	// name: Invalid value: "kube": is reserved
}
