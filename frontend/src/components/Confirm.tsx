import { Button, Group, Modal } from "@mantine/core";
import type { ReactNode } from "react";
import { ErrorNote } from "@/components/ErrorNote";

interface Props {
  opened: boolean;
  title: string;
  action: string;
  danger?: boolean;
  busy: boolean;
  /** disabled: the request is not complete. */
  disabled?: boolean;
  error: unknown;
  onConfirm: () => void;
  onClose: () => void;
  /** keeps: only its buttons close it, so that no click loses a typed text. */
  keeps?: boolean;
  children: ReactNode;
}

/** Asks before something that cannot be undone, and shows the server's refusal where the question was. */
export function Confirm(props: Props) {
  const { opened, title, action, danger, busy, disabled, error, onConfirm, onClose, keeps = false, children } = props;

  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={title}
      centered
      closeOnClickOutside={!keeps}
      closeOnEscape={!keeps}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {children}
      {error !== null && error !== undefined && (
        <div style={{ marginTop: 12 }}>
          <ErrorNote error={error} doing={action} />
        </div>
      )}
      <Group justify="flex-end" mt="md">
        <Button variant="default" onClick={onClose}>
          Back
        </Button>
        <Button
          color={danger === true ? "red.8" : undefined}
          loading={busy}
          disabled={disabled === true}
          onClick={onConfirm}
        >
          {action}
        </Button>
      </Group>
    </Modal>
  );
}
