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
// the person can see the line. It also gives what the document says of lockfiles.
func readPolicy(path string) (api.Policy, policy.LockRules, error) {
	doc, parsed, err := loadPolicy(path)
	if err != nil {
		return api.Policy{}, policy.LockRules{}, err
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return api.Policy{}, policy.LockRules{}, fmt.Errorf("find the policy %s: %w", path, err)
	}
	return api.Policy{Source: absolute, Document: doc}, parsed.Lockfiles(), nil
}

// loadPolicy reads and parses; positions in errors name path as it was typed.
func loadPolicy(path string) ([]byte, *policy.Policy, error) {
	data, err := readDocument("policy", path, maxPolicy)
	if err != nil {
		return nil, nil, err
	}
	parsed, err := policy.Parse(path, data)
	if err != nil {
		return nil, nil, err
	}
	return data, parsed, nil
}

// readDocument reads a small file of the host whole; what it is goes into the
// messages.
func readDocument(what, path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fault.Invalid("the %s %s %s", what, path, because(err))
	case !info.Mode().IsRegular():
		return nil, fault.Invalid("the %s %s is not a file", what, path)
	case info.Size() > most:
		return nil, fault.Invalid("the %s %s has %d bytes; the limit is %d", what, path, info.Size(), most)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fault.Invalid("the %s %s %s", what, path, because(err))
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		return nil, fault.Invalid("the %s %s %s", what, path, because(err))
	case int64(len(data)) > most:
		return nil, fault.Invalid("the %s %s is larger than %d bytes", what, path, most)
	}
	return data, nil
}
