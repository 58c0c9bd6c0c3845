//go:build race

package scaffold

func init() { raced = true }
