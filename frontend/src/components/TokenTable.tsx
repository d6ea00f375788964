import { Button } from "@mantine/core";
import { Icon } from "@/components/Icon";
import { num, Table } from "@/components/Table";
import { When } from "@/components/When";
import type { Token } from "@/services/tokens";

/** Tokens without their secrets. */
export function TokenTable({ tokens, onRevoke }: { tokens: Token[]; onRevoke: (token: Token) => void }) {
  return (
    <Table
      label="Tokens"
      heads={["Name", "Role", num("Begins with"), num("Made"), num("Expires"), "State", "Action"]}
      rows={tokens.map((token) => ({
        key: token.id,
        cells: [
          token.name,
          token.role,
          <span className="mono">{token.prefix}…</span>,
          <When at={token.created_at} />,
          token.expires_at === undefined ? "never" : <When at={token.expires_at} />,
          <span className="state">
            <Icon name={token.valid ? "check" : "slash"} color={token.valid ? "var(--done)" : "var(--wait)"} />
            {token.valid ? "Valid" : token.revoked_at === undefined ? "Expired" : "Revoked"}
          </span>,
          token.valid && (
            <Button size="xs" variant="default" onClick={() => onRevoke(token)} aria-label={`Revoke ${token.name}`}>
              Revoke…
            </Button>
          ),
        ],
      }))}
    />
  );
}
