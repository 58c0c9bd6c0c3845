package operators

import (
	"testing"
	"time"

	"github.com/flyball-dev/flyball/examples/operators/ipam/controller"
	"github.com/flyball-dev/flyball/examples/operators/ipam/suite"
)

// TestIPAM plays the scenarios of the ipam operator.
func TestIPAM(t *testing.T) {
	if err := suite.Prepare(t.Context(), admin(t)); err != nil {
		t.Fatal(err)
	}
	operator := as(t, "ipam-system", controller.Name)
	for _, s := range suite.Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			suite.Play(t, suite.Cluster{Admin: admin(t), Operator: operator, Idle: time.Second}, s)
		})
	}
}
