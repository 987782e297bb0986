package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// maxPolicy bounds a policy document; real ones have a few kilobytes.
const maxPolicy = 1 << 20

// readPolicy reads a policy document once and refuses a wrong one here, where
// the person can see the line.
func readPolicy(path string) (api.Policy, error) {
	doc, _, err := loadPolicy(path)
	if err != nil {
		return api.Policy{}, err
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return api.Policy{}, fmt.Errorf("find the policy %s: %w", path, err)
	}
	return api.Policy{Source: absolute, Document: doc}, nil
}

// loadPolicy reads and parses; positions in errors name path as it was typed.
func loadPolicy(path string) ([]byte, *policy.Policy, error) {
	data, err := readDocument(path)
	if err != nil {
		return nil, nil, err
	}
	parsed, err := policy.Parse(path, data)
	if err != nil {
		return nil, nil, err
	}
	return data, parsed, nil
}

func readDocument(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fault.Invalid("the policy %s %s", path, because(err))
	case !info.Mode().IsRegular():
		return nil, fault.Invalid("the policy %s is not a file", path)
	case info.Size() > maxPolicy:
		return nil, fault.Invalid("the policy %s has %d bytes; the limit is %d", path, info.Size(), maxPolicy)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fault.Invalid("the policy %s %s", path, because(err))
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxPolicy+1))
	switch {
	case err != nil:
		return nil, fault.Invalid("the policy %s %s", path, because(err))
	case len(data) > maxPolicy:
		return nil, fault.Invalid("the policy %s is larger than %d bytes", path, maxPolicy)
	}
	return data, nil
}
