package scaffold

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// mergeGo adds to the user's file what the template has with a part and does not have without it: imports,
// declarations, statements of functions, and calls on the builder of webhooks. What the user's package has already
// stays as it is: a declaration of that name, or a statement with that first line. A statement goes in front of its
// marker; where that is gone, beside the statement that is its neighbour in the template.
//
// has reports whether the package declares a name. left is what could not be added.
func mergeGo(file string, text, with, without []byte, has func(string) bool) (merged, left string, err error) {
	m := &merger{has: has, imported: map[string]int{}}
	for _, f := range []struct {
		to   **parsed
		text []byte
	}{{&m.user, text}, {&m.full, with}, {&m.base, without}} {
		if *f.to, err = parseGo(file, string(f.text)); err != nil {
			return "", "", err
		}
	}
	for _, d := range m.full.Decls {
		m.declare(d)
	}
	m.need()
	m.imports()
	slices.SortStableFunc(m.added, func(a, b added) int { return b.at - a.at })
	merged = m.user.text
	for _, a := range m.added { // the last one first, so that the places of the others stay
		merged = merged[:a.at] + a.text + merged[a.at:]
	}
	return merged, strings.TrimSpace(m.left), nil
}

// added is a text that is inserted. Texts with the same place follow each other in reverse order.
type added struct {
	at   int
	text string
}

type merger struct {
	user, full, base *parsed
	has              func(string) bool
	added            []added
	imported         map[string]int // where imports of an origin go that the user has none of
	left             string
}

// insert inserts text. A later call for the same place inserts behind it.
func (m *merger) insert(at int, text string) {
	for i := range m.added {
		if m.added[i].at == at {
			m.added[i].text += text
			return
		}
	}
	m.added = append(m.added, added{at, text})
}

// new is all text that is added so far.
func (m *merger) new() (all string) {
	for _, a := range m.added {
		all += a.text
	}
	return all + m.left
}

// declare adds a declaration of the template, or what it has more than without the part.
func (m *merger) declare(d ast.Decl) {
	if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
		return
	}
	base, user := find(m.base, m.full, d), find(m.user, m.full, d)
	fn, isFunc := d.(*ast.FuncDecl)
	switch {
	case base == nil && user == nil && !slices.ContainsFunc(namesOf(d), m.has):
		m.insert(len(m.user.text), "\n"+m.full.source(d)+"\n")
	case base == nil || !isFunc:
	case user == nil: // there may be a marker
		m.extend(fn, base.(*ast.FuncDecl), &ast.FuncDecl{Type: &ast.FuncType{}, Body: &ast.BlockStmt{}})
	default:
		m.extend(fn, base.(*ast.FuncDecl), user.(*ast.FuncDecl))
	}
}

// need adds what the template has without the part, the user's package does not have any more, and the new text needs.
func (m *merger) need() {
	for _, d := range m.base.Decls {
		names := namesOf(d)
		if len(names) == 0 || slices.ContainsFunc(names, m.has) || find(m.user, m.base, d) != nil {
			continue
		}
		used := func(name string) bool { return regexp.MustCompile(`[^.\w]` + name + `\b`).MatchString(m.new()) }
		if slices.ContainsFunc(names, used) {
			m.insert(len(m.user.text), "\n"+m.base.source(d)+"\n")
		}
	}
}

// find returns the declaration in p that is d of another file: of the same names, or, without a name, of the same text.
func find(p, of *parsed, d ast.Decl) ast.Decl {
	names, isFunc := namesOf(d), false
	if _, isFunc = d.(*ast.FuncDecl); len(names) == 0 && !isFunc && strings.Contains(p.text, of.source(d)) {
		return d
	}
	for _, other := range p.Decls {
		_, ok := other.(*ast.FuncDecl)
		if ok == isFunc && slices.Equal(namesOf(other), names) && (isFunc || len(names) > 0) {
			return other
		}
	}
	return nil
}

// source returns the text of a declaration, with all comments between it and what comes before.
func (p *parsed) source(d ast.Decl) string {
	begin := p.at(p.Name.End())
	for _, other := range p.Decls {
		if other.End() < d.Pos() {
			begin = p.at(other.End())
		}
	}
	return strings.TrimSpace(p.text[begin:p.at(d.End())])
}

// line returns the first line of a statement.
func (p *parsed) line(s ast.Stmt) string {
	first, _, _ := strings.Cut(p.text[p.at(s.Pos()):p.at(s.End())], "\n")
	return strings.TrimSpace(first)
}

// lines returns the lines of a statement, with the indentation and a comment behind it.
func (p *parsed) lines(s ast.Stmt) string {
	begin, end := lineStart(p.text, p.at(s.Pos())), p.at(s.End())
	rest, _, _ := strings.Cut(p.text[end:], "\n")
	return p.text[begin:end] + rest + "\n"
}

// lineStart returns where the line of a place begins.
func lineStart(text string, at int) int { return strings.LastIndex(text[:at], "\n") + 1 }

// extend adds the statements of a function to that of the user, and the calls of a builder. A statement that uses a
// variable of the template which the user's file does not have is left.
func (m *merger) extend(fn, base, user *ast.FuncDecl) {
	lacking, has := variables(base), variables(m.user.File)
	maps.DeleteFunc(lacking, func(name string, _ bool) bool { return has[name] })
	for i, s := range fn.Body.List {
		line := m.full.line(s)
		inBase := slices.ContainsFunc(base.Body.List, func(b ast.Stmt) bool { return m.base.line(b) == line })
		if inBase || lineOf(m.user.text, line) >= 0 {
			continue
		}
		switch at, marked := m.place(fn, user, i); {
		case at < 0 || needs(s, lacking):
			m.left += m.full.lines(s)
			maps.Copy(lacking, variables(s))
		case marked:
			m.insert(at, m.full.lines(s))
		default:
			m.insert(at, m.full.lines(s)+"\n")
		}
	}
	m.build(fn, base, user)
}

// variables returns the names of the variables and parameters that are declared in a part of a file.
func variables(part ast.Node) map[string]bool {
	all := map[string]bool{}
	ast.Inspect(part, func(n ast.Node) bool {
		var names []*ast.Ident
		switch n := n.(type) {
		case *ast.Field:
			names = n.Names
		case *ast.ValueSpec:
			names = n.Names
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				if name, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					names = append(names, name)
				}
			}
		}
		for _, name := range names {
			all[name.Name] = true
		}
		return true
	})
	return all
}

// needs reports whether a statement uses one of these variables.
func needs(s ast.Stmt, variables map[string]bool) (found bool) {
	ast.Inspect(s, func(n ast.Node) bool {
		name, ok := n.(*ast.Ident)
		found = found || ok && variables[name.Name]
		return !found
	})
	return found
}

// place returns where the i-th statement of a function goes in that of the user, or -1, and whether that is at a
// marker.
func (m *merger) place(fn, user *ast.FuncDecl, i int) (at int, marked bool) {
	s := fn.Body.List[i]
	end := m.full.at(fn.Body.Rbrace)
	if next := marker.FindStringSubmatch(m.full.text[m.full.at(s.End()):end]); next != nil {
		for _, at := range marker.FindAllStringSubmatchIndex(m.user.text, -1) {
			if m.user.text[at[2]:at[3]] == next[1] {
				return at[0], true
			}
		}
	}
	known := func(s ast.Stmt) ast.Stmt {
		for _, u := range user.Body.List {
			if m.user.line(u) == m.full.line(s) {
				return u
			}
		}
		return nil
	}
	for _, next := range fn.Body.List[i+1:] {
		if u := known(next); u != nil {
			return lineStart(m.user.text, m.user.at(u.Pos())), false
		}
	}
	for _, before := range slices.Backward(fn.Body.List[:i]) {
		if u := known(before); u != nil {
			rest, _, _ := strings.Cut(m.user.text[m.user.at(u.End()):], "\n")
			return m.user.at(u.End()) + len(rest) + 1, false
		}
	}
	return -1, false
}

// build adds the calls on the builder of webhooks that the template has with the part only.
func (m *merger) build(fn, base, user *ast.FuncDecl) {
	had, complete := calls(base), calls(user)["Complete"]
	for _, c := range sorted(calls(fn)) {
		name := c.Fun.(*ast.SelectorExpr).Sel
		if had[name.Name] != nil || calls(user)[name.Name] != nil || !strings.HasPrefix(name.Name, "With") {
			continue
		}
		text := m.full.text[m.full.at(name.Pos()):m.full.at(c.End())] + ".\n"
		if complete == nil {
			m.left += "." + text
			continue
		}
		m.insert(m.user.at(complete.Fun.(*ast.SelectorExpr).Sel.Pos()), text)
	}
}

// calls returns the calls of methods in a function, by the names of the methods.
func calls(fn *ast.FuncDecl) map[string]*ast.CallExpr {
	all := map[string]*ast.CallExpr{}
	ast.Inspect(fn, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			if s, ok := c.Fun.(*ast.SelectorExpr); ok {
				all[s.Sel.Name] = c
			}
		}
		return true
	})
	return all
}

// sorted returns calls in the order of the file.
func sorted(all map[string]*ast.CallExpr) []*ast.CallExpr {
	return slices.SortedFunc(maps.Values(all), func(a, b *ast.CallExpr) int { return int(a.End() - b.End()) })
}

// imports adds the imports that the new text needs.
func (m *merger) imports() {
	text := m.new()
	for _, s := range m.full.Imports {
		name, of := importName(s)
		same := func(u *ast.ImportSpec) bool {
			n, p := importName(u)
			return n == name && p == of
		}
		used := regexp.MustCompile(`\b` + name + `\.`).MatchString(text)
		if used && !slices.ContainsFunc(m.user.Imports, same) {
			m.addImport(m.full.text[m.full.at(s.Pos()):m.full.at(s.End())], of)
		}
	}
}

// addImport adds an import beside those whose paths begin as its own does, or in front of the marker.
func (m *merger) addImport(spec, of string) {
	last, block := -1, (*ast.GenDecl)(nil)
	for _, d := range m.user.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT && g.Lparen.IsValid() {
			block = g
		}
	}
	if block == nil {
		m.insert(m.user.at(m.user.Name.End()), "\n\nimport (\n\t"+spec+"\n)\n")
		return
	}
	for _, s := range block.Specs {
		_, other := importName(s.(*ast.ImportSpec))
		if origin(other) == origin(of) {
			rest, _, _ := strings.Cut(m.user.text[m.user.at(s.End()):], "\n")
			last = m.user.at(s.End()) + len(rest) + 1
		}
	}
	at, again := m.imported[origin(of)]
	switch begin := m.user.at(block.Lparen) + 2; {
	case last >= 0:
		m.insert(last, "\t"+spec+"\n")
	case again:
		m.insert(at, "\t"+spec+"\n")
	case origin(of) == "": // the standard library
		m.imported[""] = begin
		m.insert(begin, "\t"+spec+"\n")
	default:
		end := m.user.at(block.Rparen)
		for _, at := range marker.FindAllStringSubmatchIndex(m.user.text[:end], -1) {
			if m.user.text[at[2]:at[3]] == "imports" {
				end = at[0]
			}
		}
		m.imported[origin(of)] = end
		m.insert(end, "\n\t"+spec+"\n")
	}
}

// origin returns by what imports are grouped: the standard library, or the first elements of the path.
func origin(of string) string {
	if !strings.Contains(of, ".") {
		return ""
	}
	elements := strings.Split(of, "/")
	if elements[0] == "github.com" && len(elements) > 2 {
		return path.Join(elements[:3]...)
	}
	return elements[0]
}
