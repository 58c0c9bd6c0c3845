package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// component is a program or a module in a bill of materials.
//
// Source: CycloneDX 1.5, https://cyclonedx.org/docs/1.5/json/.
type component struct {
	Type    string `json:"type"`
	BOMRef  string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

// describe writes, for each program in a folder, a bill of materials beside it. It lists the modules from which the go
// command has built the program. The file SHA256SUMS has the checksums of all, for sha256sum --check.
func describe(dir string) error {
	programs, err := filepath.Glob(filepath.Join(dir, "flyball*"))
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, program := range programs {
		if strings.HasSuffix(program, ".json") {
			continue // of an earlier run
		}
		sum, err := checksum(program)
		if err != nil {
			return err
		}
		bill, err := billOf(program, sum)
		if err != nil {
			return err
		}
		file := program + ".cdx.json"
		if err := os.WriteFile(file, bill, 0o644); err != nil {
			return err
		}
		of, err := checksum(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n%s  %s\n", sum, filepath.Base(program), of, filepath.Base(file))
	}
	if sums.Len() == 0 {
		return fmt.Errorf("there is no program flyball* in %s", dir)
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

func checksum(file string) (string, error) {
	text, err := os.ReadFile(file)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// billOf returns the bill of materials of a program with this checksum.
func billOf(program, sum string) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	if info.Main.Version == "(devel)" { // as in a working tree of git worktree, which the go command does not see
		return nil, fmt.Errorf("%s has no version: build it in a clone", program)
	}
	part := func(kind, path, version string) component {
		purl := "pkg:golang/" + path + "@" + version
		return component{Type: kind, BOMRef: purl, Name: path, Version: version, PURL: purl}
	}
	main := part("application", info.Main.Path, info.Main.Version)
	main.Hashes = []hash{{Alg: "SHA-256", Content: sum}}
	modules := []component{part("library", "std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, part("library", m.Path, m.Version))
	}
	return json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata":   map[string]any{"component": main},
		"components": modules,
	}, "", "  ")
}
