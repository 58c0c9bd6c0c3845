// Package seeded has controllers with bugs, each beside a mended twin. They show what simtest finds, and they test it:
// every bug must be found, and no mended controller may have a finding.
//
// Each test file has one controller, which a field named mended turns from one into the other, and the story that shows
// the bug is in testdata. Most bugs are modelled on one that a real controller had. The controllers are made with this
// module's framework; package seeded of interop/controllerruntime has those that are made with controller-runtime. Both
// are tested with [Check].
package seeded
