import { Button } from "@mantine/core";
import { Icon } from "@/components/Icon";
import { When } from "@/components/When";
import type { Token } from "@/services/tokens";

/** Tokens without their secrets. */
export function TokenTable({ tokens, onRevoke }: { tokens: Token[]; onRevoke: (token: Token) => void }) {
  return (
    <div className="tablewrap">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Role</th>
            <th scope="col">Begins with</th>
            <th scope="col">Made</th>
            <th scope="col">Expires</th>
            <th scope="col">State</th>
            <th scope="col">Action</th>
          </tr>
        </thead>
        <tbody>
          {tokens.map((token) => (
            <tr key={token.id}>
              <td>{token.name}</td>
              <td>{token.role}</td>
              <td className="mono">{token.prefix}…</td>
              <td className="num">
                <When at={token.created_at} />
              </td>
              <td className="num">{token.expires_at === undefined ? "never" : <When at={token.expires_at} />}</td>
              <td>
                <span className="state">
                  <Icon name={token.valid ? "check" : "slash"} color={token.valid ? "var(--done)" : "var(--wait)"} />
                  {token.valid ? "Valid" : token.revoked_at === undefined ? "Expired" : "Revoked"}
                </span>
              </td>
              <td>
                {token.valid && (
                  <Button
                    size="xs"
                    variant="default"
                    onClick={() => onRevoke(token)}
                    aria-label={`Revoke ${token.name}`}
                  >
                    Revoke…
                  </Button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
