package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// licence is the texts that a module's authors want passed on.
type licence struct {
	ids   []string          // SPDX's
	texts map[string][]byte // by file name
}

// readLicence reads what lies at a module's root. A module whose licence is not
// recognised stops the release: somebody has to read it first.
func readLicence(module, dir string) (licence, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return licence{}, err
	}
	l := licence{texts: map[string][]byte{}}
	seen := map[string]bool{}
	named := regexp.MustCompile(`(?i)(licen[cs]e|copying|notice)`)
	for _, e := range entries {
		if !e.Type().IsRegular() || !named.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return licence{}, err
		}
		l.texts[e.Name()] = text
		if id := recognise(string(text)); id != "" && !seen[id] {
			seen[id] = true
			l.ids = append(l.ids, id)
		}
	}
	if len(l.ids) == 0 {
		return licence{}, fmt.Errorf("%s: no licence in %s is recognised: read it, and add it to recognise()", module, dir)
	}
	return l, nil
}

// recognise names a licence by sentences that only it has.
func recognise(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	has := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case has("mozilla public license, version 2.0"), has("mozilla public license version 2.0"):
		return "MPL-2.0"
	case has("apache license version 2.0"), has("apache license, version 2.0"):
		return "Apache-2.0"
	case has("permission is hereby granted, free of charge, to any person"):
		return "MIT"
	case has("redistribution and use in source and binary forms") && (has("neither the name") || has("may not be used to endorse")):
		return "BSD-3-Clause"
	case has("redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	case has("permission to use, copy, modify, and/or distribute this software for any purpose"),
		has("permission to use, copy, modify, and distribute this software for any purpose"):
		return "ISC"
	}
	return ""
}
