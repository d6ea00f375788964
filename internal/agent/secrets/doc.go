// Package secrets seals the secrets of trials and opens them again, by age
// (https://age-encryption.org/v1). The key is a file outside the database: the
// public part seals, and only the private part opens.
package secrets
