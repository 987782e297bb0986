//go:build long

package audit

const mutations = 10_000
