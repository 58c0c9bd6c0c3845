// Package programs runs Kubernetes' own programs, unmodified, on flyball serve. It holds only tests.
//
// kube-controller-manager, kube-scheduler and kubectl run behind flyball serve, and the same behind kube-apiserver.
// Workloads are created, scaled and deleted (story_test.go), and must become what they should. At the end the logs of
// the programs may hold only errors that they also log behind kube-apiserver (known, in programs_test.go).
// FLYBALL_PROGRAMS=1h goes on for an hour, and checks that no program grows: make programs.
//
// [TestConformance] runs Kubernetes' conformance tests, the specs of e2e.test whose names have the word Conformance in
// brackets: on flyball serve alone, and on another one with kube-controller-manager and kube-scheduler behind it, for
// the specs that need a controller or a scheduler that flyball serve does not have. No container runs, because a fake
// kubelet only reports that pods run, so that specs that look at containers are not run. The webhooks that specs deploy
// as pods run as processes beside flyball serve. testdata/exceptions.yaml has every spec that does not pass on flyball
// serve alone, with the reason and the place where it runs, if any. The test fails if a spec fails that is not listed
// as failing, and if one passes that is. It takes about twenty minutes, and is run when asked for:
// make test-conformance. If all is as listed it writes the table in docs/localapi.md.
package programs
