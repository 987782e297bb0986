package archtest_test

import (
	"go/ast"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostNamesakes is how many unexported functions may share a name: whoever greps for one finds it among so many.
const mostNamesakes = 8

// namesakes are the names that more share, with how many at most. They may only become fewer.
func namesakes() map[string]int {
	return map[string]int{"takeBytes": 15, "checkKeys": 12, "withDefaults": 15, "readFile": 11, "textOf": 9, "isOver": 11, "namesOf": 9}
}

// TestNamesCanBeFound: a name says what its function does to what, so that a search for it leads to few places.
func TestNamesCanBeFound(t *testing.T) {
	found := map[string]int{}
	for _, f := range tree(t) {
		if f.test || below(f.pkg, "test") || below(f.pkg, "bench") {
			continue
		}
		for _, decl := range f.syntax.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && !fn.Name.IsExported() && fn.Name.Name != "main" && fn.Name.Name != "init" {
				found[fn.Name.Name]++
			}
		}
	}
	for name, n := range found {
		if most := max(namesakes()[name], mostNamesakes); n > most {
			t.Errorf("%d functions are called %s; at most %d: say in each name what it is done to", n, name, most)
		}
	}
	for name, most := range namesakes() {
		if found[name] < most {
			t.Errorf("%d functions are called %s, and the exception allows %d: lower it", found[name], name, most)
		}
	}
	if len(found) < 3_000 {
		t.Fatalf("only %d names were found; the pattern is broken", len(found))
	}
}

// sharedPackageNames are the names that stand for several packages, each with a reason. They may only become fewer.
func sharedPackageNames() map[string]string {
	return map[string]string{
		"all":      "each is the list of one contract's implementations",
		"embedded": "each is what one program brings along",
		"npm":      "a registry's protocol, and the client that speaks it",
	}
}

// TestPackagesHaveNamesOfTheirOwn: a qualified name, such as one in a stack trace, leads to one package.
func TestPackagesHaveNamesOfTheirOwn(t *testing.T) {
	packages := map[string]map[string]bool{}
	for _, f := range tree(t) {
		name := f.syntax.Name.Name
		if f.test || name == "main" || below(f.pkg, "test") || below(f.pkg, "bench") {
			continue
		}
		if packages[name] == nil {
			packages[name] = map[string]bool{}
		}
		packages[name][f.pkg] = true
	}
	for name, places := range packages {
		if len(places) > 1 && sharedPackageNames()[name] == "" {
			t.Errorf("%q are all called %s", slices.Sorted(maps.Keys(places)), name)
		}
	}
	for name := range sharedPackageNames() {
		if len(packages[name]) < 2 {
			t.Errorf("%s is the name of one package and needs no exception any more", name)
		}
	}
}

// mostNounClauses is how many sentences of comments begin with "What" or "Who" as a noun. They may only become fewer.
const mostNounClauses = 48

// nounClause is the beginning of such a sentence; a question ends in a question mark, and nothing here is one.
var nounClause = regexp.MustCompile(`(?m)(?:^|[.!?:] )(?:What|Who|Whoever) [a-z]`)

// TestSentencesHaveSubjects: "The sandbox can write ..." is read faster than "What the sandbox can write ...".
func TestSentencesHaveSubjects(t *testing.T) {
	n := 0
	for _, f := range tree(t) {
		for _, group := range f.syntax.Comments {
			n += len(nounClause.FindAllString(group.Text(), -1))
		}
	}
	switch {
	case n > mostNounClauses:
		t.Errorf("%d sentences of comments begin with a clause as their subject (\"What ...\", \"Who ...\"); at most %d: name who does what", n, mostNounClauses)
	case n < mostNounClauses:
		t.Errorf("%d sentences of comments begin with a clause as their subject: lower the bound, which is %d", n, mostNounClauses)
	}
	if len(nounClause.FindAllString("What is kept is here. Who reads it waits. A file: What then", -1)) != 3 {
		t.Error("the pattern is broken")
	}
}

// mostDefinedTerms is how many words package comments define. They may only become fewer: the words
// that mean something of their own in the whole product are in the glossary of ARCHITECTURE.md, and
// all others are the field's, or are explained where their type is.
const mostDefinedTerms = 34

// definedTerm is a word in asterisks, or the subject of a sentence "A word is the ...". test/house
// has the same pattern, and counts a word once.
var definedTerm = regexp.MustCompile(`\*[A-Za-z][A-Za-z -]*\*|(?:^|[.;:] )[Aa]n? [a-z][a-z-]*(?: [a-z-]+)? (?:is|are|means) (?:an?|the|one|what|how|all|that)\b`)

// TestPackageCommentsAreNoDictionaries: a stranger reads a package comment without learning a dialect first.
func TestPackageCommentsAreNoDictionaries(t *testing.T) {
	n := 0
	for _, f := range tree(t) {
		if doc := f.syntax.Doc.Text(); !f.test {
			n += countDefinedTerms(doc)
			if strings.Contains(doc, "Vocabulary:") {
				t.Errorf("%s begins a vocabulary: say it in the comment of each type, or in the glossary of ARCHITECTURE.md", f.path)
			}
		}
	}
	switch {
	case n > mostDefinedTerms:
		t.Errorf("package comments define %d words; at most %d: explain each where its type is", n, mostDefinedTerms)
	case n < mostDefinedTerms:
		t.Errorf("package comments define %d words: lower the bound, which is %d", n, mostDefinedTerms)
	}
	if countDefinedTerms("A *thing* is one. A\npile is the second; an old heap is one more. It is a third.") != 3 {
		t.Error("the pattern is broken")
	}
}

func countDefinedTerms(doc string) int {
	return len(definedTerm.FindAllString(strings.Join(strings.Fields(doc), " "), -1))
}

// TestGlossaryIsShort: whoever reads this code has few words to learn, and finds each once.
func TestGlossaryIsShort(t *testing.T) {
	doc := read(t, filepath.Join("..", "..", "ARCHITECTURE.md"))
	_, glossary, found := strings.Cut(doc, "\n## Glossary\n")
	glossary, _, _ = strings.Cut(glossary, "\n## ")
	terms := regexp.MustCompile(`(?m)^\| ([a-z ]+) \| [A-Z"].*\. \|$`).FindAllStringSubmatch(glossary, -1)
	rows := strings.Count(glossary, "\n|") - 2 // the head and the rule below it
	if !found || len(terms) != rows || rows < 10 || rows > 25 {
		t.Errorf("the glossary has %d rows, of which %d are a word and a sentence; it has 10 to 25 words", rows, len(terms))
	}
	seen := map[string]bool{}
	for _, term := range terms {
		if seen[term[1]] {
			t.Errorf("the glossary has %s twice", term[1])
		}
		seen[term[1]] = true
	}
}
