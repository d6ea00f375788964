/** Why a viewer finds no button here. */
export function ReadOnly({ action }: { action: string }) {
  return (
    <p style={{ color: "var(--mantine-color-dimmed)", fontSize: 13, margin: 0 }}>
      Your role is viewer. Ask an operator to {action}.
    </p>
  );
}
