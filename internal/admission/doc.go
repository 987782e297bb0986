// Package admission decides behind the door: every "may this happen?" goes through the
// Controller, which asks package policy, writes the audit record before anything
// happens, and answers. What cannot be decided or recorded is refused.
//
// The questions and answers, and the words for them, are package door's.
package admission
