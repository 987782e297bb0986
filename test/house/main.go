// Command house measures the source tree as a reader meets it: names that many functions share, short names, words of our own, doors, wide
// interfaces and types, files that refer to each other in circles, and how much there is to read. It prints one row for each measure.
//
//	go run ./test/house [-names N] [DIR]
//
// -names also lists the N names that most unexported functions share. The table says nothing about quality by itself; it tells whether a
// change made the tree easier to search, and a note can show it before and after.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
)

func main() {
	names := flag.Int("names", 0, "list the `N` names that most unexported functions share")
	flag.Parse()
	dir := cmp.Or(flag.Arg(0), ".")
	if err := printHouse(dir, *names); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func printHouse(dir string, listed int) error {
	tree, err := readTree(dir)
	if err != nil {
		return err
	}
	words, err := countWords(filepath.Join(dir, "docs"), filepath.Join(dir, "README.md"), filepath.Join(dir, "ARCHITECTURE.md"))
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	shared, short, functions := tree.shareNames()
	fmt.Fprintf(out, "unexported functions\t%d\n", functions)
	fmt.Fprintf(out, "of a name that ten or more have\t%s\n", percent(shared, functions))
	fmt.Fprintf(out, "of a name of at most five letters\t%s\n", percent(short, functions))
	fmt.Fprintf(out, "words that package comments define\t%d\n", len(tree.terms))
	fmt.Fprintf(out, "packages\t%d\n", len(tree.packages))
	fmt.Fprintf(out, "names that several packages have\t%d\n", tree.countSharedPackageNames())
	fmt.Fprintf(out, "doors of internal/\t%d\n", tree.countDoors())
	width, widest := tree.findWidestInterface()
	fmt.Fprintf(out, "widest interface\t%d\t%s\n", width, widest)
	methods, largest := tree.findLargestType()
	fmt.Fprintf(out, "most methods of a type\t%d\t%s\n", methods, largest)
	fmt.Fprintf(out, "lines of Go without tests\t%d\n", tree.lines)
	fmt.Fprintf(out, "words of the documentation\t%d\n", words)
	for _, hall := range tree.findLargestPackages(5) {
		back, all := tree.packages[hall].countBackReferences()
		fmt.Fprintf(out, "references that run back in a large package\t%d of %d\t%s, %d lines\n", back, all, hall, tree.packages[hall].lines)
	}
	for _, name := range tree.listSharedNames(listed) {
		fmt.Fprintf(out, "\t%d\t%s\n", tree.functions[name], name)
	}
	return out.Flush()
}

func percent(part, all int) string {
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(max(all, 1)))
}

// shareNames counts the unexported functions whose name ten or more have, those with a short name, and all.
func (t *tree) shareNames() (shared, short, all int) {
	for name, n := range t.functions {
		all += n
		if n >= 10 {
			shared += n
		}
		if len(name) <= 5 {
			short += n
		}
	}
	return shared, short, all
}

// listSharedNames lists the n names that most unexported functions share.
func (t *tree) listSharedNames(n int) []string {
	names := slices.SortedFunc(maps.Keys(t.functions), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.functions[b], t.functions[a]), cmp.Compare(a, b))
	})
	return names[:min(n, len(names))]
}
