package main

import (
	"errors"

	"github.com/spf13/pflag"
)

// kubeletFlag is the value of --kubelet. It accepts true and false as older names for pretend and off.
type kubeletFlag struct{ on *bool }

func addKubeletFlag(fs *pflag.FlagSet, on *bool) {
	*on = true
	fs.Var(kubeletFlag{on}, "kubelet",
		"what happens to pods, which are never run: with pretend, a fake kubelet reports them as scheduled, running "+
			"and ready; with off, they stay Pending")
	fs.Lookup("kubelet").NoOptDefVal = "pretend"
}

// Set implements [pflag.Value].
func (f kubeletFlag) Set(value string) error {
	switch value {
	case "pretend", "true":
		*f.on = true
	case "off", "false":
		*f.on = false
	default:
		return errors.New("it must be pretend or off")
	}
	return nil
}

// String implements [pflag.Value].
func (f kubeletFlag) String() string {
	if f.on != nil && *f.on {
		return "pretend"
	}
	return "off"
}

// Type implements [pflag.Value].
func (f kubeletFlag) Type() string { return "string" }
