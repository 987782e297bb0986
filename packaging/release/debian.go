package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// stageFiles lays out an installation below a prefix, with the licences of all that is
// in it and the bill. It returns the root.
func (s *source) stageFiles(ctx context.Context, arch, prefix string, m *materials, bill []byte) (string, error) {
	root := filepath.Join(s.work, "stage-"+arch+strings.ReplaceAll(prefix, "/", "-"))
	env := []string{"DESTDIR=" + root, "PREFIX=" + prefix, "BIN=" + filepath.Join(s.work, "bin-"+arch), "HERE=" + s.hostProgram()}
	if _, err := output(ctx, s.tree, env, "sh", "scripts/install"); err != nil {
		return "", err
	}
	doc := filepath.Join(root, prefix, "share", "doc", "cofferdam")
	own, err := os.ReadFile(filepath.Join(s.tree, "LICENSE"))
	if err != nil {
		return "", err
	}
	texts := map[string][]byte{"copyright": own, "sbom.cdx.json": bill}
	for key, p := range m.modules {
		for name, text := range p.licence.texts {
			texts[filepath.Join("licenses", key, name)] = text
		}
	}
	for name, text := range texts {
		target := filepath.Join(doc, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // it is published
			return "", err
		}
		if err := os.WriteFile(target, text, 0o644); err != nil { //nolint:gosec // it is published
			return "", err
		}
	}
	return root, makePlain(root, s.date)
}

// makePlain gives every file of a tree one date and a mode that no umask decided.
func makePlain(root string, date time.Time) error {
	tree, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	err = fs.WalkDir(tree.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if err := tree.Chmod(path, fs.FileMode(plainMode(info))); err != nil {
			return err
		}
		return tree.Chtimes(path, date, date)
	})
	return errors.Join(err, tree.Close())
}

// debian packs a staged tree. nfpm reads SOURCE_DATE_EPOCH.
func (s *source) debian(ctx context.Context, arch, tree, target string) error {
	env := []string{
		"SOURCE_DATE_EPOCH=" + strconv.FormatInt(s.date.Unix(), 10),
		"ARCH=" + arch, "VERSION=" + debianVersion(s.version, s.date), "STAGE=" + tree,
		// nfpm is a program of this machine.
		"GOOS=", "GOARCH=", "GOFLAGS=-buildvcs=false",
	}
	_, err := output(ctx, s.tree, env, "go", "tool", "-modfile=packaging/nfpm.mod", "nfpm",
		"package", "--config", "packaging/nfpm.yaml", "--packager", "deb", "--target", target)
	return err
}

// debianVersion is a version of dpkg's order: v1.2.0, then v1.2.0-7-gHASH (the
// seventh commit after it), then v1.3.0-rc.1, then v1.3.0. A version without a tag is below all that have one, by its date.
func debianVersion(described string, date time.Time) string {
	after := regexp.MustCompile(`^v(\d.*)-(\d+)-g([0-9a-f]+)$`).FindStringSubmatch(described)
	tag, isTag := strings.CutPrefix(described, "v")
	switch {
	case after != nil:
		return fmt.Sprintf("%s+%s.g%s", beforeRelease(after[1]), after[2], after[3])
	case isTag && tag != "" && tag[0] >= '0' && tag[0] <= '9':
		return beforeRelease(tag)
	}
	return "0~" + date.Format("20060102150405") + "." + described
}

// beforeRelease writes a pre-release's dash as the sign that sorts before nothing.
func beforeRelease(tag string) string { return strings.Replace(tag, "-", "~", 1) }
