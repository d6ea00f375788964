// Package secrets seals the secrets of trials and opens them again, by age
// (https://age-encryption.org/v1). The key is a file outside the database: whoever
// has the public part can seal, and only who has the private part can open.
package secrets
